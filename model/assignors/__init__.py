"""Reference assignors: for each name that Kafka ships, what it should do at its best.

``reference(name)`` is the one entry. Each assignor is a ``Design`` of pure stages; design switches
(``model.bugs.switches.switched``) replace stages to reproduce what was shipped by mistake.
"""

from __future__ import annotations

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.assignors import ranges, roundrobin, sticky
from rebalance_verifier.model.assignors.design import Design, DesignedAssignor
from rebalance_verifier.model.assignors.promises import REFERENCE
from rebalance_verifier.model.claims import owned_claim, user_data_claim
from rebalance_verifier.model.values import Partitions, RebalanceProtocol
from rebalance_verifier.model.wire import encode_cooperative_user_data, encode_sticky_user_data


def _cooperative_user_data(owned: Partitions, generation: int) -> bytes:
    return encode_cooperative_user_data(generation)


_EAGER = (RebalanceProtocol.EAGER,)
_BOTH = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

_REFERENCES = {
    assignor.name: assignor
    for assignor in (
        DesignedAssignor("range", _EAGER, REFERENCE["range"], Design(allocate=ranges.allocate)),
        DesignedAssignor("roundrobin", _EAGER, REFERENCE["roundrobin"], Design(allocate=roundrobin.allocate)),
        DesignedAssignor(
            "sticky",
            _EAGER,
            REFERENCE["sticky"],
            Design(allocate=sticky.allocate, read=user_data_claim, encode=encode_sticky_user_data),
        ),
        DesignedAssignor(
            "cooperative-sticky",
            _BOTH,
            REFERENCE["sticky"],
            Design(
                allocate=sticky.allocate,
                read=owned_claim,
                withhold=sticky.withhold,
                encode=_cooperative_user_data,
            ),
        ),
    )
}

NAMES: tuple[str, ...] = tuple(_REFERENCES)
"""The names of the reference assignors, as in ``partition.assignment.strategy`` metadata."""


def reference(name: str) -> DesignedAssignor:
    """Return the reference assignor ``name``. Raises ValueError for one that is not in ``NAMES``."""
    if name not in _REFERENCES:
        raise ValueError(unknown("reference assignor", name, NAMES))
    return _REFERENCES[name]
