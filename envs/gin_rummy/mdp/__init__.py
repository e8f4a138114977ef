"""`gin_rummy_mdp`: 16 actions and 342 numbers."""
