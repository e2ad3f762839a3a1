"""A loopback proxy between clients and brokers that keeps or answers chosen requests.

It stands before one broker; the cluster advertises the proxy's port (``MockCluster.advertise``,
``advertised.listeners``), so nothing is rewritten. What shall happen to which request is a `ProxyRule`, data
that can be added, awaited and removed while clients run, so a test or a replay never sleeps. On a connection
answers keep their order, as a broker keeps it: one that waits holds up those behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from rebalance_verifier.live.clients.proxy.frames import Direction, Frame, trim
from rebalance_verifier.live.clients.proxy.rules import ProxyRule
from rebalance_verifier.live.clients.proxy.wire import (
    Fields,
    FrameError,
    correlation,
    framed,
    header,
    read_fields,
    read_response,
    refusal,
    size,
    write_response,
)

HOST = "127.0.0.1"
Address = tuple[str, int]
_T = TypeVar("_T")


class ProxyTimeout(TimeoutError):
    """Nothing of what was awaited came; the text says what, and what came last."""


@dataclass(slots=True, kw_only=True)
class Placed:
    """A rule at work. ``matched`` are the requests that it has acted on so far, ``count`` how many; of a rule
    without end that answers them itself the first are forgotten."""

    rule: ProxyRule
    proxy: Proxy
    matched: list[Frame] = field(default_factory=list)
    count: int = 0

    def claims(self, frame: Frame) -> bool:
        """Check whether it acts on this message; counts it."""
        if not self.rule.fits(frame) or (self.rule.times is not None and self.count >= self.rule.times):
            return False
        self.count += 1
        self.matched.append(frame)
        if self.rule.times is None and self.rule.error:
            trim(self.matched)
        return True

    def await_match(self, count: int = 1, seconds: float = 30.0) -> Frame:
        """Return the message number ``count`` (from 1) that it acts on. Raises ProxyTimeout."""
        what = f"{self.rule.client or 'any client'}'s {self.rule.api} request number {count}"

        def there() -> Frame | None:
            index = count - 1 - self.count
            return self.matched[index] if index < 0 else None

        return self.proxy.wait(there, what, seconds)

    def remove(self) -> None:
        """Act on nothing more; what is taken stays taken."""
        self.proxy.remove(self)


class _Pipe:
    """One connection of a client, and ours to the broker."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.number, self.reader, self.writer = number, reader, writer
        self.waiting: deque[Frame] = deque()
        """Requests in order that the client has no answer to."""
        self.ready: dict[int, bytes] = {}
        """Answers of ours, by correlation id, to requests behind others."""
        self.cut = False
        self.client: str | None = None

    @property
    def owed(self) -> bool:
        """Check whether the broker has yet to answer something."""
        return any(frame.fate == "passed" for frame in self.waiting)


class Proxy:
    """One proxy, at work inside a ``with`` block; `to` says where its broker is.

    ``address`` is where clients reach that. ``frames`` is what was seen, after a long time the last ``KEPT``
    messages of it at least; `count` counts all. ``heard`` is called with each. Safe to use from any thread.
    """

    def __init__(self, heard: Callable[[Frame], None] | None = None) -> None:
        self._heard = heard
        self._upstream: Address | None = None
        self.address: Address = HOST, 0
        self.frames: list[Frame] = []
        self.total = 0
        """Messages so far."""
        self._counts: Counter[tuple[str, str | None, Direction]] = Counter()
        self._placed: list[Placed] = []
        self._pipes: dict[int, _Pipe] = {}
        self._connections = 0
        self._changed = threading.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._writers: list[asyncio.StreamWriter] = []
        self.failures: list[str] = []
        """What could not be read, for a report: such a message passes, a stream without frames ends."""

    # -- life ------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self._await(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _await(self, work: Coroutine[Any, Any, _T], seconds: float = 30.0) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, HOST, 0)
        self.address = self._server.sockets[0].getsockname()[:2]

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def to(self, host: str, port: int) -> None:
        """Say where the broker is. Until then clients are turned away."""
        self._upstream = host, port

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"{self.address[0]}:{self.address[1]}"

    # -- rules -----------------------------------------------------------------------------------------

    def add(self, rule: ProxyRule) -> Placed:
        """Put a rule to work. Where several fit, the one added first acts."""
        placed = Placed(rule=rule, proxy=self)
        self.call(lambda: self._placed.append(placed))
        return placed

    def remove(self, placed: Placed) -> None:
        """Let a rule act no more; nothing if it does not by now."""
        self.call(lambda: self._placed.remove(placed) if placed in self._placed else None)

    def call(self, work: Callable[[], _T]) -> _T:
        """Return what ``work`` returns, run where the proxy runs."""

        async def run() -> _T:
            return work()

        return self._await(run())

    def wait(self, look: Callable[[], _T | None], what: str, seconds: float = 30.0) -> _T:
        """Return what ``look`` returns, once that is not None; asked again after each message.

        Raises ProxyTimeout that says ``what`` did not come.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while (found := look()) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    last = self.frames[-1] if self.frames else None
                    last_seen = (
                        f"the last was {last.client}'s {last.api} {last.direction}" if last else "nothing"
                    )
                    raise ProxyTimeout(f"{what} did not come within {seconds:g} s; {last_seen}")
                self._changed.wait(left)
        return found

    def await_frame(self, fits: Callable[[Frame], bool], what: str, seconds: float = 30.0) -> Frame:
        """Return the first message that fits, seen already or to come. Raises ProxyTimeout."""
        return self.wait(lambda: next((f for f in self.frames if fits(f)), None), what, seconds)

    # -- what is done to clients -------------------------------------------------------------------------

    def reply(self, frame: Frame, fields: Mapping[str, Any]) -> bool:
        """Answer a request that a rule has taken, when its turn on its connection comes.

        Whether that was at once; to a connection that is closed by now nothing is sent.
        """

        def answer() -> bool:
            frame.fate = "answered"
            return self._respond(frame, dict(fields))

        return self.call(answer)

    def refuse(self, frame: Frame, error: str) -> bool:
        """Answer a request that a rule has taken with an error by name; whether at once."""
        return self.reply(frame, refusal(frame.api, error, frame.fields or {}))

    def disconnect(self, client: str) -> int:
        """Close all connections of a client; how many."""
        return self.call(lambda: self._disconnect(client))

    def _disconnect(self, client: str) -> int:
        pipes = [pipe for pipe in self._pipes.values() if pipe.client == client and not pipe.cut]
        for pipe in pipes:
            self._cut(pipe)
        return len(pipes)

    def is_open(self, frame: Frame) -> bool:
        """Check whether the connection that a message came on is still there."""
        pipe = self._pipes.get(frame.connection)
        return pipe is not None and not pipe.cut and not pipe.reader.at_eof()

    # -- the log ---------------------------------------------------------------------------------------

    def count(self, api: str, client: str, direction: Direction = "request") -> int:
        """Return how many messages of an API a client has sent or got so far."""
        return self._counts[api, client, direction]

    def _log(self, frame: Frame) -> None:
        """Within the lock: add a message."""
        self.frames.append(frame)
        trim(self.frames)
        self.total += 1
        self._counts[frame.api, frame.client, frame.direction] += 1
        if self._heard is not None:
            self._heard(frame)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _frame(self, pipe: _Pipe, direction: Direction, about: Frame | None = None, **values: Any) -> Frame:
        if about is not None:
            values |= {name: getattr(about, name) for name in ("api", "version", "correlation", "client")}
        return Frame(
            number=self.total,
            at=time.monotonic(),
            connection=pipe.number,
            direction=direction,
            **values,
        )

    # -- connections -----------------------------------------------------------------------------------

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        self._writers.append(writer)
        self._connections += 1
        pipe = self._pipes[self._connections] = _Pipe(self._connections, reader, writer)
        try:
            await self._serve(pipe)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two sides has closed
        except FrameError as error:
            self._failed(pipe, error)
        except asyncio.CancelledError:
            pass  # the proxy closes, nobody else cancels
        finally:
            self._cut(pipe)
            self._tasks.remove(task)
            del self._pipes[pipe.number]

    async def _serve(self, pipe: _Pipe) -> None:
        if self._upstream is None:
            return
        reader, writer = await asyncio.open_connection(*self._upstream)
        self._writers.append(writer)
        down = asyncio.ensure_future(self._responses(pipe, reader))
        up = asyncio.ensure_future(self._requests(pipe, writer))
        try:
            await asyncio.wait((down, up), return_when=asyncio.FIRST_COMPLETED)
            if not down.done() and pipe.owed:
                # The client has gone; what the broker has got counts, as does its answer.
                self._cut(pipe)
                await down
            for task in (down, up):
                if task.done() and (error := task.exception()):
                    raise error
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            writer.close()

    async def _requests(self, pipe: _Pipe, writer: asyncio.StreamWriter) -> None:
        while not pipe.cut:
            payload = await _payload(pipe.reader)
            head = header(payload)
            pipe.client = head.client
            fields = self._read(pipe, read_fields, payload)
            frame = self._frame(
                pipe,
                "request",
                api=head.api,
                version=head.version,
                correlation=head.correlation,
                client=head.client,
                fields=fields,
            )
            rule = self._match(frame)
            pipe.waiting.append(frame)
            if rule is None:
                writer.write(framed(payload))
                await writer.drain()
            elif rule.error:
                self._respond(frame, refusal(frame.api, rule.error, frame.fields or {}))
            self._notify()

    async def _responses(self, pipe: _Pipe, reader: asyncio.StreamReader) -> None:
        while True:
            payload = await _payload(reader)
            number = correlation(payload)
            request = next((f for f in pipe.waiting if f.correlation == number), None)
            if request is None:
                raise FrameError(f"a response with correlation id {number} that nobody asked for")
            fields = self._read(pipe, read_response, request.api, request.version, payload)
            fate = "dropped" if pipe.cut else "passed"
            self._match(self._frame(pipe, "response", request, fields=fields, fate=fate))
            if pipe.cut:
                pipe.waiting.remove(request)
                if not pipe.owed:
                    return
                continue
            pipe.ready[number] = payload
            self._deliver(pipe)
            self._notify()

    def _read(self, pipe: _Pipe, read: Callable[..., Fields | None], *values: Any) -> Fields | None:
        """Return the fields of a message; what cannot be read passes all the same, without."""
        try:
            return read(*values)
        except FrameError as error:
            self._failed(pipe, error)
            return None

    def _failed(self, pipe: _Pipe, error: FrameError) -> None:
        self.failures.append(f"connection {pipe.number} of {pipe.client}: {error}")

    def _match(self, frame: Frame) -> ProxyRule | None:
        """Log a message and find the rule that acts on it: whoever waits sees all of that, or nothing."""
        with self._changed:
            self._log(frame)
            rule = next((one.rule for one in self._placed if one.claims(frame)), None)
            if rule is not None:
                frame.fate = "answered" if rule.error else "taken"
            self._changed.notify_all()
        return rule

    def _respond(self, frame: Frame, fields: Fields) -> bool:
        pipe = self._pipes.get(frame.connection)
        if pipe is None or pipe.cut:
            return False
        pipe.ready[frame.correlation] = write_response(frame.api, frame.version, frame.correlation, fields)
        with self._changed:
            self._log(self._frame(pipe, "response", frame, fields=fields, fate="ours"))
        self._deliver(pipe)
        self._notify()
        return frame.correlation not in pipe.ready

    def _deliver(self, pipe: _Pipe) -> None:
        """Send the answers whose turn it is: a broker answers a connection in the order of its requests."""
        while pipe.waiting and pipe.waiting[0].correlation in pipe.ready:
            payload = pipe.ready.pop(pipe.waiting.popleft().correlation)
            if not pipe.cut:
                pipe.writer.write(framed(payload))

    def _cut(self, pipe: _Pipe) -> None:
        if not pipe.cut:
            pipe.cut = True
            pipe.writer.close()


async def _payload(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(size(await reader.readexactly(4)))
