"""Scenarios of an assignor: drawn, played round by round, viewed."""
