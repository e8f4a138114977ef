"""Games of hidden stones on a small board: phantom tic-tac-toe and phantom Hex."""
