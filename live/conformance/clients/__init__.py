"""What is known of each client beside its release profile: one module for each."""
