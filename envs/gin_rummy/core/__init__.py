"""What the gin games share: rules, the card table, scoring, features of cards, text."""
