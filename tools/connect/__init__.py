"""What the assignor of Kafka Connect (KIP-415) does, release by release: nobody can plug one in."""
