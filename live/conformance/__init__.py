"""Is what was observed a run of the model; and what each client does otherwise."""
