"""The contract of Kafka's assignors as pytest tests, one per clause: run ``pytest`` in this directory."""

from rebalance_verifier import conformance

test_contract = conformance("my_assignor:CooperativeRoundRobin")
