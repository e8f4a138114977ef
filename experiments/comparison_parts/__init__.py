"""What comparison.py is made of: its rows, the benchmark's settings, stored results, pictures."""
