"""A training run: where it starts, its loop, metrics, signals and tracking."""
