"""Phantom games, exact without their histories: lists of own tries, and payoffs that factor over cells."""
