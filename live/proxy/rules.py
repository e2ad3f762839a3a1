"""What shall happen to which message, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rebalance.live.proxy.frames import Direction, Frame
from rebalance.live.proxy.wire import CODES, SCHEMAS


class ProxyAction(StrEnum):
    """What a rule does with a message."""

    HOLD = "hold"
    """It waits until it is released, and all behind it on its connection."""
    DROP = "drop"
    """It gets lost, and with it all behind it on its connection, which stays open: a dead cable."""
    CUT = "cut"
    """The client's connection is closed instead of passing it on; a request has not been seen then."""
    CUT_AFTER = "cut after"
    """A request is passed on, then the client's connection is closed. The broker's stays open."""
    ANSWER = "answer"
    """A request is answered with ``ProxyRule.error`` at once; the broker does not see it."""
    TAKE = "take"
    """A request is kept for ``Proxy.reply``; the broker does not see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRule:
    """What happens to which message.

    It concerns messages of ``api`` by ``direction``, of ``client`` (a client id; None for all) and, where
    ``when`` is given, with this error ("NONE" and "*" for any but that are possible), ``since`` this version
    of the API. Of those that fit it
    leaves the first ``skip`` alone and acts on the next ``times`` (None: on all that follow).
    """

    api: str
    action: ProxyAction
    direction: Direction = "request"
    client: str | None = None
    when: str | None = None
    skip: int = 0
    times: int | None = 1
    error: str = ""
    since: int = 0

    def __post_init__(self) -> None:
        if (
            self.action in (ProxyAction.ANSWER, ProxyAction.TAKE, ProxyAction.CUT_AFTER)
            and self.direction != "request"
        ):
            raise ValueError(f"{self.action.value!r} is for requests")
        if self.action in (ProxyAction.ANSWER, ProxyAction.TAKE) and (self.api, "response") not in SCHEMAS:
            known = ", ".join(sorted({api for api, _ in SCHEMAS}))
            raise ValueError(f"{self.api} cannot be answered; known: {known}")
        if self.action is ProxyAction.ANSWER and self.error not in CODES:
            raise ValueError(f"unknown error {self.error!r}; known: {', '.join(CODES)}")

    def fits(self, frame: Frame) -> bool:
        """Whether it concerns this message."""
        if (self.api, self.direction) != (frame.api, frame.direction):
            return False
        if self.client not in (None, frame.client) or frame.version < self.since:
            return False
        if self.when is None:
            return True
        return frame.error not in ("", "NONE") if self.when == "*" else frame.error == self.when
