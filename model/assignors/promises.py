"""What is promised of the assignors that clients ship, by their documentation."""

from __future__ import annotations

from rebalance.model.assignor import Promise

_RANGE = frozenset({Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED, Promise.RACK_AWARE})
_STICKY = frozenset({Promise.BALANCED, Promise.STICKY, Promise.RACK_AWARE})

REFERENCE = {
    "range": _RANGE,
    "roundrobin": frozenset({Promise.BALANCED_EQUAL}),
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
}
"""Those of the model, by protocol name."""

JAVA = {
    "RangeAssignor": _RANGE,
    "RoundRobinAssignor": frozenset({Promise.BALANCED_EQUAL}),
    "StickyAssignor": _STICKY | {Promise.SPREAD},
    "CooperativeStickyAssignor": _STICKY | {Promise.SPREAD},
}
"""Those of ``org.apache.kafka.clients.consumer``; aware of racks since KIP-881, which the bridge sees."""

PYTHON = {
    "range": frozenset({Promise.BALANCED_PER_TOPIC}),
    "roundrobin": frozenset({Promise.BALANCED_EQUAL}),
    "sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
    "cooperative-sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
}
"""Those of kafka-python and aiokafka, by protocol name."""
