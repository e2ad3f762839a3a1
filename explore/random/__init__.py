"""Walks through a machine, and their traces made short."""
