"""Hypothesis plays the group: for tests of one's own, and for the search for switches (``make machine``)."""
