"""Kafka's own code, step by step: a coordinator and consumers in one JVM, every message in our hands."""
