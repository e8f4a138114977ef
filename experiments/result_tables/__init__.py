"""The tables of results as lines of Markdown, one function a table, made from the files in experiments/results."""
