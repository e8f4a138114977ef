"""`gin_rummy_openspiel`: OpenSpiel's rules exactly."""
