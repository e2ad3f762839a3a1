"""Parts of a group that the three protocols share: its setup and its observations."""
