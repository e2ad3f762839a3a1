"""State machines in first-order logic: the language, the prover, finite structures."""
