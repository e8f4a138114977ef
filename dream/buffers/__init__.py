"""What is remembered between sampling and fitting: replay, reservoirs, sums by information set."""
