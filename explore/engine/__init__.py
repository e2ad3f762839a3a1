"""Breadth-first search of a machine: a plain engine to read, a fast one to run, and what both share."""
