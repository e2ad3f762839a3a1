"""From what a user names to a process that answers."""
