"""A run of the model, forced on real clients message by message."""
