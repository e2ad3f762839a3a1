"""What recordings and replays do where nobody says otherwise. Light: the command line reads it first."""

KAFKA = "4.1.0"
"""The release of Apache Kafka that ``--cluster kafka`` runs."""
SESSION = {"mock": 1500, "kafka": 3000}
"""``session.timeout.ms``, by cluster: short, since each crash takes that long to be noticed."""
NODES = {"failover": 3}
"""Nodes of ``--cluster kafka`` that a scenario takes; one for the others."""
POLL = 50
"""Milliseconds that a poll may wait for records."""
PARTITIONS = 6
"""Of each topic."""
STEPS = 12
"""Of a random scenario."""
SETTLE = 30.0
"""Seconds that a group may take to come to rest."""
PATIENCE = 10.0
"""Seconds that a replayed client gets for what the trace says that it does next."""
CLOSE = 40.0
"""Seconds that a consumer may take to close: those of Java and aiokafka wait up to 30 for an answer."""
