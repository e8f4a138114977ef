"""Checkpoints of other projects, read without executing anything of them."""
