"""Model and Kafka's own code, step by step at once."""
