"""Every step of the executable model is a path of steps of the logic."""
