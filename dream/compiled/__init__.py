"""How compiled functions are called."""
