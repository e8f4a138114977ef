"""Phantom games on a small board: phantom tic-tac-toe and phantom Hex."""
