"""The assignors of aiokafka, driven as its own coordinator drives them: see `classic`."""

from __future__ import annotations

from rebalance_verifier.gate.targets.hosts.classic import ONE_PROCESS, ClassicAssignor
from rebalance_verifier.gate.targets.hosts.python_client import import_assignor, import_client

_ASSIGNORS = {
    "range": ("aiokafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("aiokafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("aiokafka.coordinator.assignors.sticky.sticky_assignor", "StickyPartitionAssignor"),
}


def load(spec: str) -> ClassicAssignor:
    """Return the assignor of aiokafka with the protocol name ``spec``.

    Raises ValueError for an unknown name and ImportError when the library is not installed, or older than
    0.9.0, which had no assignors of its own.
    """
    name = spec.removesuffix(ONE_PROCESS)
    return ClassicAssignor(
        import_assignor(_ASSIGNORS, name, "aiokafka"),
        import_client("aiokafka.coordinator.protocol").ConsumerProtocol,
        import_client("aiokafka.consumer.group_coordinator").GroupCoordinator,
        import_client("aiokafka").__version__,
        "https://github.com/aio-libs/aiokafka",
        one_process=name != spec,
    )
