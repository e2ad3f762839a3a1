"""What the code of Kafka Streams does where no target of `rebalance check` asks: an upgrade over releases."""
