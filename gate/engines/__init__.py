"""One run of each engine from end to end."""
