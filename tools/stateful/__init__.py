"""Hypothesis plays the group: the search for switches in sizes beyond the explorer (``make machine``)."""
