"""Conformance of groups in which somebody speaks the consumer protocol: message by message."""
