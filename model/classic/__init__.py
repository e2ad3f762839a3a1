"""The consumer group as a state machine: members, coordinator, leader, network, environment."""
