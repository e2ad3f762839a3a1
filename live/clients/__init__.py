"""Real clients on real coordinators: recorded, led, disturbed, replayed."""
