"""Reference assignors: for each name that Kafka ships, what it should do at its best.

``reference(name)`` is the one entry. Each assignor is a ``Design`` of pure stages; design switches
(``rebalance.model.bugs.switches``) replace stages to reproduce what was shipped by mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance.model.assignor import Assignor, Promise
from rebalance.model.assignors import ranges, roundrobin, sticky
from rebalance.model.assignors.design import Design, DesignedAssignor
from rebalance.model.claims import owned_claim, user_data_claim
from rebalance.model.values import Partitions, RebalanceProtocol
from rebalance.model.wire import encode_cooperative_user_data, encode_sticky_user_data

if TYPE_CHECKING:
    from rebalance.model.bugs.switches import Switch


def _cooperative_user_data(owned: Partitions, generation: int) -> bytes:
    return encode_cooperative_user_data(generation)


_EAGER = (RebalanceProtocol.EAGER,)
_BOTH = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
_STICKY = frozenset({Promise.BALANCED, Promise.STICKY, Promise.RACK_AWARE})
_RANGE = frozenset({Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED, Promise.RACK_AWARE})

_REFERENCES = {
    assignor.name: assignor
    for assignor in (
        DesignedAssignor("range", _EAGER, _RANGE, Design(allocate=ranges.allocate)),
        DesignedAssignor(
            "roundrobin", _EAGER, frozenset({Promise.BALANCED_EQUAL}), Design(allocate=roundrobin.allocate)
        ),
        DesignedAssignor(
            "sticky",
            _EAGER,
            _STICKY,
            Design(allocate=sticky.allocate, read=user_data_claim, encode=encode_sticky_user_data),
        ),
        DesignedAssignor(
            "cooperative-sticky",
            _BOTH,
            _STICKY,
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


def reference(name: str, switches: Iterable[str] = ()) -> Assignor:
    """The reference assignor ``name``, with the design ``switches`` applied in order.

    Raises ValueError for a name that is not in ``NAMES``, and for a switch that is unknown or does not
    fit the assignor; the message lists those that do.
    """
    if name not in _REFERENCES:
        raise ValueError(f"unknown assignor {name!r}: there are {', '.join(NAMES)}")
    assignor = _REFERENCES[name]
    design = assignor.design
    for id_ in switches:
        design = _switch(name, id_).apply(design)
    return replace(assignor, design=design)


def _switch(name: str, id_: str) -> Switch:
    from rebalance.model.bugs.switches import SWITCHES  # it builds on the designs of this package

    fitting = [switch.id for switch in SWITCHES.values() if name in switch.fits]
    if id_ not in fitting:
        known = "does not fit" if id_ in SWITCHES else "is not known for"
        raise ValueError(f"switch {id_!r} {known} assignor {name!r}: those that fit are {', '.join(fitting)}")
    return SWITCHES[id_]
