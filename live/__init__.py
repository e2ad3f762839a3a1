"""Real consumers on a real group coordinator: started, disturbed, recorded, and what they did judged."""
