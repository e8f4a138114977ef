"""The equations: one pure function each, with its source."""
