"""Exact melds, deadwood, layoffs and outs."""
