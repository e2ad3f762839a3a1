"""Real consumers, each in a process of its own."""
