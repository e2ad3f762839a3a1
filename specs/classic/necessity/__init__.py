"""What each assumption and decision is for: the run that follows without it."""
