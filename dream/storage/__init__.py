"""All that touches a disk or a network: checkpoints, exports, foreign files, cached trees, the hub."""
