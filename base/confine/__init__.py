"""Programs that are not trusted: the two processes that keep one, its sandbox, and what it gets to see."""
