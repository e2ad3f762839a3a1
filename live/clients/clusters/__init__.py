"""A Kafka cluster for the time of a block: librdkafka's mock, or the real one."""
