"""Campaigns of any number of scenarios, in slices."""
