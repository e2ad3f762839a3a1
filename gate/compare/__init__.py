"""Targets and releases beside each other."""
