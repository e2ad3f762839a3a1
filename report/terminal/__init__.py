"""Reports for the terminal, and as JSON."""
