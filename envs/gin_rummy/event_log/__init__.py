"""`gin_rummy`: 107 actions and the event-log observation of 4,887 numbers."""
