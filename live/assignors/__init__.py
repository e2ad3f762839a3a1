"""Adapters for assignors that other Python projects ship, and the lines that a target of any language speaks."""
