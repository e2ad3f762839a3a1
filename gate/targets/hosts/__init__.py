"""Adapters for assignors of other Python projects, and the lines that a target in any language speaks."""
