"""Rule-based and search players of the gin games."""
