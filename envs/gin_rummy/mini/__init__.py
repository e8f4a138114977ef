"""`mini_gin_rummy`: a reduced deck, small enough for exact values."""
