"""What shall happen to which request, as data."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.proxy.wire import CODES, SCHEMAS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRule:
    """Which requests the broker does not see, and what becomes of them.

    It concerns requests of ``api``, of ``client`` (a client id; None for all), ``since`` this version of the
    API, and acts on the next ``times`` (None: on all). Each is answered with ``error`` at once ("NONE" for
    none); without one it is taken: kept for ``Proxy.reply``. Raises ValueError for what cannot be answered.
    """

    api: str
    client: str | None = None
    times: int | None = 1
    error: str = ""
    since: int = 0

    def __post_init__(self) -> None:
        if (self.api, "response") not in SCHEMAS:
            known = ", ".join(sorted({api for api, _ in SCHEMAS}))
            raise ValueError(f"{self.api} cannot be answered; known: {known}")
        if self.error and self.error not in CODES:
            raise ValueError(f"unknown error {self.error!r}; known: {', '.join(CODES)}")

    def fits(self, frame: Frame) -> bool:
        """Check whether it concerns this message."""
        return (
            (self.api, "request") == (frame.api, frame.direction)
            and self.client in (None, frame.client)
            and frame.version >= self.since
        )
