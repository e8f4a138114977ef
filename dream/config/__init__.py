"""Configuration: typed settings, the schema of a run, and composition with Hydra."""
