"""Adapters for assignors that other Python projects ship."""
