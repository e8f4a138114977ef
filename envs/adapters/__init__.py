"""Other frameworks: their games and players as ours, ours as theirs. Third-party imports stand here alone, lazily."""
