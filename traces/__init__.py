"""What files on disk look like: every kind, and its schema."""
