"""Our model of consumer groups beside the public TLA+ model of KIP-848, which somebody else wrote."""
