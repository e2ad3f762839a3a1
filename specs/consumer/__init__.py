"""The consumer protocol (KIP-848) in logic, and what is proved of it."""
