"""A loopback proxy between clients and brokers, and what it has to know of Kafka's frames."""
