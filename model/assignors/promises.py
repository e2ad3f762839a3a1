"""What is promised of the assignors that clients ship, by their documentation."""

from __future__ import annotations

from rebalance_verifier.model.assignor import Promise

_RANGE = frozenset({Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED, Promise.RACK_AWARE})
_STICKY = frozenset({Promise.BALANCED, Promise.STICKY, Promise.RACK_AWARE})

REFERENCE = {
    "range": _RANGE,
    "roundrobin": frozenset({Promise.BALANCED_EQUAL}),
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
}
"""Those of the model, by protocol name."""

KAFKA = "org.apache.kafka.clients.consumer"
"""The package of the client's interface, and of its own assignors."""

_SERVER = "org.apache.kafka.coordinator.group.assignor"

_STREAMS = "org.apache.kafka.streams.processor"
_TASKS = frozenset({Promise.STICKY, Promise.STANDBYS})
_EVEN_TASKS = _TASKS | {Promise.BALANCED}

JAVA = {
    f"{KAFKA}.RangeAssignor": _RANGE,
    f"{KAFKA}.RoundRobinAssignor": frozenset({Promise.BALANCED_EQUAL}),
    f"{KAFKA}.StickyAssignor": _STICKY | {Promise.SPREAD},
    f"{KAFKA}.CooperativeStickyAssignor": _STICKY | {Promise.SPREAD},
    f"{_SERVER}.UniformAssignor": frozenset({Promise.BALANCED, Promise.STICKY}),
    f"{_SERVER}.RangeAssignor": frozenset({Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED}),
    f"{_STREAMS}.assignment.assignors.StickyTaskAssignor": _EVEN_TASKS,
    f"{_STREAMS}.internals.assignment.StickyTaskAssignor": _EVEN_TASKS,
    f"{_STREAMS}.internals.assignment.LegacyStickyTaskAssignor": _EVEN_TASKS,
    f"{_STREAMS}.internals.assignment.FallbackPriorTaskAssignor": _TASKS | {Promise.FALLBACK},
    f"{_STREAMS}.internals.assignment.HighAvailabilityTaskAssignor": _EVEN_TASKS
    | {Promise.HIGH_AVAILABILITY, Promise.TAGS},
    "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor": _EVEN_TASKS,
    f"{_SERVER}.SimpleAssignor": frozenset({Promise.BALANCED, Promise.STICKY}),  # of share groups
}
"""Those of Java, by class. The client's are aware of racks since KIP-881, which the bridge sees; no assignor
of the coordinator reads racks."""

PYTHON = {
    "range": frozenset({Promise.BALANCED_PER_TOPIC}),
    "roundrobin": frozenset({Promise.BALANCED_EQUAL}),
    "sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
    "cooperative-sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
}
"""Those of kafka-python and aiokafka, by protocol name."""
