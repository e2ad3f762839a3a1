"""A run of the model forced on Kafka's own code."""
