"""The commands' work: what `python -m dream.run`, `evaluate`, `exploit`, `ladder` and `export` do."""
