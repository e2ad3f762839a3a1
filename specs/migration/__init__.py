"""Groups on their way between the classic and the consumer protocol, in logic."""
