"""Logs that strangers could paste, with the answers that were written before they were run."""
