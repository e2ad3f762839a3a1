"""What must happen once faults stop: fair cycles, and the lassos that show them."""
