"""A broker for a target that asks one for offsets: an assignor by lag makes a client of its own in assign().

It knows the topics of the question that is open. What was committed, and where a partition ends, follows from
the topic, the number of the partition and how often something has happened in the history, so that the same
question has the same answer in every process, and lags change between rebalances.
"""

from __future__ import annotations

import math
import zlib
from functools import partial
from threading import Thread

from rebalance_verifier.live.clients.leaders.broker import LeaderBroker, Network, Topics

_OWN_TOPIC = "rebalance"
_STOP_SECONDS = 5.0


class OffsetsBroker:
    """A broker on a port of this machine, served by a thread until ``close``."""

    def __init__(self) -> None:
        network = Network()
        self._moment = 0
        self._broker = LeaderBroker(network, _OWN_TOPIC, self._offsets)
        self._broker.to_all = True
        self._closed = False
        serve = partial(network.serve, lambda: self._closed, math.inf)
        self._thread = Thread(target=serve, name=type(self).__name__, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Return ``host:port``, for bootstrap.servers."""
        return self._broker.bootstrap

    @property
    def variables(self) -> dict[str, str]:
        """Return what tells the process of a target where it is (``Bridge.java``)."""
        return {"REBALANCE_BROKER": self.address}

    def show(self, topics: Topics, moment: int = 0) -> None:
        """Know these topics, and no others, as they are at this moment."""
        self._broker.topics, self._moment = topics, moment

    def _offsets(self, topic: str, partition: int) -> tuple[int, int]:
        return offsets(topic, partition, self._moment)

    def close(self) -> None:
        """Close it with all connections."""
        self._closed = True
        self._thread.join(_STOP_SECONDS)
        self._broker.close()


def offsets(topic: str, partition: int, moment: int = 0) -> tuple[int, int]:
    """Return the offset that is committed, -1 where none is, and the one at which the partition ends.

    The lag is up to 899 records, and nothing at all for one partition in ten; another in seven has no commit.
    From one moment to the next a partition gets a thousand records, and its lag is another one.
    """
    number = zlib.crc32(f"{topic}-{partition}".encode())
    end = 1000 * (1 + moment) + number % 1000
    now = zlib.crc32(f"{topic}-{partition}@{moment}".encode()) if moment else number
    lag = now // 1000 % 1000
    return (-1 if number % 7 == 0 else end - (0 if lag >= 900 else lag)), end
