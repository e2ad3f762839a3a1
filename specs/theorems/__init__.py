"""What is proved, and from what."""
