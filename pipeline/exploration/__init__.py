"""Breadth-first search with the states in Spark."""
