"""A conversation with one target: ask for assignments, get an answer or the reason why there is none.

Whatever a target does after it has started is a `Failure`, never an exception: it may hang, crash, eat
memory, talk nonsense; it is then ended with everything it started, and started again for the next request.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rebalance_verifier.base.confine.environment import minimal
from rebalance_verifier.base.processes.child import Child, ProcessGone
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.lines import Garbage, Json, from_line, show
from rebalance_verifier.base.processes.supervision import SANDBOX, limit_memory
from rebalance_verifier.base.processes.workers import quiet
from rebalance_verifier.gate.targets import HASH_SEED
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import Entered, check_time, until_failure
from rebalance_verifier.gate.targets.hosts.messages import (
    HELLO_SEQ,
    Hello,
    RefusalReply,
    UserDataSource,
    assign_request,
    bye_request,
    decode_assignment,
    decode_hello,
    decode_reply,
    decode_user_data,
    hello_request,
    reply_seq,
    user_data_request,
)
from rebalance_verifier.gate.targets.hosts.task_messages import decode_tasks, tasks_request
from rebalance_verifier.gate.targets.resolve import Target
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Asker,
    AssignQuestion,
    Failure,
    Question,
    Reply,
    UserDataQuestion,
    Written,
)
from rebalance_verifier.properties.assignors.task_calls import TaskQuestion, TaskReply

if TYPE_CHECKING:  # few targets ask a broker
    from rebalance_verifier.gate.targets.offsets import OffsetsBroker

AnyQuestion = Question | TaskQuestion
AnyReply = Reply | Written | TaskReply


class TargetLost(Exception):
    """The process of the target ended among many questions: asked one by one it will show which it was."""


Observer = Callable[[str, bytes], None]
"""Called with ``">"`` and each request line, ``"<"`` and each reply line."""

_T = TypeVar("_T")
_Request = tuple[int, bytes]
"""Its number and its line."""

_Decode = Callable[[Json], _T]
_MOST_KNOWN, _LONGEST_KNOWN = 4096, 4096  # replies that are remembered, and bytes in one of them
MOST_LED = 32
"""Histories that one process plays of a target that makes clients of its own."""

START_SECONDS = 20.0
"""How long a target may take to say hello."""

_MOST_WRITTEN = 100_000  # the same of user data
_LARGE = 2**20  # bytes of a reply that takes long to read
_NO_SANDBOX = "no sandbox for"
_SEES = (
    "with --sandbox it sees the system, this directory, and the paths that its command and variables name "
    "(--env NAME)"
)
_ADVICE = (
    "nothing was run; a sandbox is made of user namespaces, which Linux must let you have: on Ubuntu by",
    "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a container let that be the sandbox",
    "(--network none, --read-only); without --sandbox the target has all your rights",
)


class Session:
    """One target in a process of its own; use as a context manager.

    Entering starts the target and raises TargetError when it cannot be started or says no valid hello
    within ``start_seconds``. A request may take ``call_seconds`` of CPU time of the process and its
    descendants, and leave them idle for as long; they may have ``memory_mib`` of memory resident (watched
    where /proc tells; elsewhere the clock counts).

    A process is replaced after timeout, crash, memory, and after garbage that leaves it unclear where the
    next reply begins; it is kept after a well-formed reply, be it errored, skipped or a wrong result.
    ``starts`` counts the processes; ``call_seconds`` may be changed between calls, and so may ``history``,
    the number of the history that is played (0: none): what a target was told in another one is of no use;
    and ``moment``, which says what lags the broker tells of.
    From the moment ``latest`` of ``time.monotonic`` on, which may be changed too, each request raises
    OutOfTime, and so does one that is waited for then.
    """

    def __init__(
        self,
        target: Target,
        call_seconds: float = 10.0,
        start_seconds: float = START_SECONDS,
        memory_mib: int = 2048,
        observe: Observer | None = None,
        hash_seed: str = HASH_SEED,
    ) -> None:
        self.target = target
        self.starts = self.history = self.moment = 0
        self.latest = math.inf
        self.call_seconds, self._start_seconds, self._memory_mib = call_seconds, start_seconds, memory_mib
        self._observe = observe
        # A target that depends on the hash seed does so alike in every run: traces replay.
        self._environment = {**minimal(target.variables), "PYTHONHASHSEED": hash_seed}
        self._twin: Session | None = None
        self._alone = False
        self._child: Child | None = None
        self._offsets: OffsetsBroker | None = None
        self._led = set[int]()  # histories since the process began
        self._hello: Hello | None = None
        self._lost: Failure | None = None  # why it could not be started again
        self._used = False
        self._ended = 0  # how often what it did ended its process
        self._seq = HELLO_SEQ
        self._known_user_data: dict[tuple[Partitions, int], bytes | Failure | None] = {}
        self._heard: dict[
            _Decode[Any], dict[bytes | None, Any]
        ] = {}  # by what decodes it, without its number

    def __enter__(self) -> Self:
        outcome = self._start()
        if isinstance(outcome, Failure):
            self.close()
            raise _start_error(self.target, outcome)
        self._hello = outcome
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def hello(self) -> Hello:
        """Return what the target said of itself when it was first started. Raises RuntimeError before
        that."""
        if self._hello is None:
            raise RuntimeError("the session is not started: use it as `with Session(target) as session:`")
        return self._hello

    @property
    def cpu_seconds(self) -> float:
        """Return the seconds that this process and those of the target have run: a busy machine does not add
        to them."""
        children = [one._child for one in (self, self._twin) if one is not None and one._child is not None]
        return time.process_time() + sum(child.cpu_seconds for child in children)

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        """Ask for one assignment."""
        return self._assigned([(self.history, AssignQuestion(protocol, cluster, group))])[0]

    def assign_tasks(self, question: TaskQuestion) -> TaskReply:
        """Ask for one assignment of tasks, of a second process where the question wants one."""
        if question.again and (second := self.second()) is not None:
            return second.assign_tasks(question._replace(again=False))
        return self._tasks([(self.history, question)])[0]

    def _tasks(self, questions: Sequence[tuple[int, TaskQuestion]]) -> list[TaskReply]:
        lines = [(n := self._next(), tasks_request(n, question, history)) for history, question in questions]
        outcomes = self._exchange(lines, decode_tasks)
        return [q.bounded(outcome) for (_, q), outcome in zip(questions, outcomes, strict=False)]

    def answers(self, questions: Sequence[tuple[int, AnyQuestion]]) -> list[AnyReply]:
        """Return the answers to questions, each with the number of its history: of as many histories as the
        target can be in at once. All questions are sent before the first answer is read. Raises
        TargetLost."""
        kinds = AssignQuestion, TaskQuestion
        data = [(number, one) for number, q in questions if not isinstance(q, kinds) for one in q]
        assign = [(number, q) for number, q in questions if isinstance(q, kinds)]
        again = [(number, q) for number, q in assign if q.again]
        second = (self.second() if again else None) or self
        ended = self._ended + second._ended
        written, only = iter(self._data(data)), self.hello.metadata_only
        own = self._each([(number, q) for number, q in assign if not q.again], only)
        other = second._each(again, only)
        if self._lost or ended != self._ended + second._ended:
            raise TargetLost
        return [
            next(other if q.again else own) if isinstance(q, kinds) else [*islice(written, len(q))]
            for _, q in questions
        ]

    def _each(
        self, questions: Sequence[tuple[int, AssignQuestion | TaskQuestion]], only: bool
    ) -> Iterator[Reply | TaskReply]:
        """Return the replies to questions, which are all of one kind: a target answers to one."""
        of_tasks = [(number, q) for number, q in questions if isinstance(q, TaskQuestion)]
        others = [(number, q) for number, q in questions if isinstance(q, AssignQuestion)]
        return iter([*self._tasks(of_tasks), *self._assigned(others, only)])

    def _assigned(self, questions: Sequence[tuple[int, AssignQuestion]], only: bool = False) -> list[Reply]:
        if self.target.lags:
            if len(questions) > 1:  # the broker knows the topics of one
                return [reply for one in questions for reply in self._assigned([one], only)]
            self._show(*questions[0])
        lines = [(n := self._next(), assign_request(n, *q[:3], history, only)) for history, q in questions]
        outcomes = self._exchange(lines, decode_assignment)
        return [
            outcome if isinstance(outcome, Failure) else question.bounded(Answer(*outcome))
            for (_, question), outcome in zip(questions, outcomes, strict=False)
        ]

    def _show(self, history: int, question: AssignQuestion) -> None:
        """Let the broker know the topics of a question. Each history leaves clients in the process, which
        nobody closes: it is replaced before they are too many."""
        self._led.add(history)
        if len(self._led) > MOST_LED:
            self._bye()
        self._broker().show(question.cluster.topics, self.moment)

    def _broker(self) -> OffsetsBroker:
        if self._offsets is None:
            from rebalance_verifier.gate.targets.offsets import OffsetsBroker

            self._offsets = OffsetsBroker()
        return self._offsets

    def again(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        """Ask the same of a second process, as another leader would: one that was asked nothing else, and
        whose sets iterate in another order. A target that cannot run twice at once (a fixed port, a lock)
        is asked in its one process."""
        return (self.second() or self).assign(protocol, cluster, group)

    def second(self) -> Session | None:
        """Return the second process of the target; None where it cannot run twice at once."""
        if self._twin is None and not self._alone:
            limits = (self.call_seconds, self._start_seconds, self._memory_mib, self._observe)
            twin = Session(self.target, *limits, hash_seed="1")
            twin._hello, twin.latest = self._hello, self.latest
            self._alone = isinstance(twin._start(), Failure)
            if self._alone:
                twin.close()
            else:
                self._twin = twin
        if self._twin is not None:
            self._twin.call_seconds, self._twin.history = self.call_seconds, self.history
            self._twin.latest, self._twin.moment = self.latest, self.moment
        return self._twin

    def user_data(
        self, owned: Partitions, generation: int, asker: Asker | None = None
    ) -> bytes | Failure | None:
        """Return what a member that was last assigned ``owned`` in ``generation`` writes as user data; None
        without asking when the target said that it writes none. ``asker``: which member it is."""
        return self.user_data_of([UserDataQuestion(owned, generation, asker)])[0]

    def user_data_of(self, questions: Sequence[UserDataQuestion]) -> list[bytes | Failure | None]:
        """Return what these members write, in order, up to the first Failure.

        Programs of our own get all questions at once. What a Python assignor writes follows from the
        question, as it may with others: one process of it is asked once.
        """
        if not self.hello.user_data:
            return [None] * len(questions)
        numbered = [(self.history, question) for question in questions]
        if self.target.hosted or self.target.stack_signal is not None:
            return until_failure(self._data(numbered))
        return until_failure(self._data([question])[0] for question in numbered)

    def _data(self, questions: Sequence[tuple[int, UserDataQuestion]]) -> list[bytes | Failure | None]:
        """Return what members write, in order; what follows one that ended the process means nothing."""
        sources, known = self.hello.user_data_from, self._known_user_data
        if sources is None and not self.target.hosted:
            return self._written(questions)
        if len(known) > _MOST_WRITTEN or (self._child is None and sources is None):
            known.clear()
        owned, generation = (sources is None or source in sources for source in UserDataSource)
        keys = [
            (q.owned if owned else (), q.generation if generation else NO_GENERATION) for _, q in questions
        ]
        new = [key for key in dict.fromkeys(keys) if key not in known]
        written = self._written([(0, UserDataQuestion(*key)) for key in new])
        known.update(zip(new, written, strict=False))
        found = [known.get(key) for key in keys]
        for key, data in zip(new, written, strict=False):
            if isinstance(data, Failure) or len(data or b"") > _LONGEST_KNOWN:
                del known[key]
        return found

    def _written(self, questions: Sequence[tuple[int, UserDataQuestion]]) -> list[bytes | Failure | None]:
        lines = [(n := self._next(), user_data_request(n, *q, history)) for history, q in questions]
        return [*self._exchange(lines, decode_user_data)]

    def renew(self) -> None:
        """Let the next request go to a new process, unless the one that runs has been asked nothing."""
        if self._used:
            self.close()
        self._lost = None

    @contextlib.contextmanager
    def forked(self) -> Iterator[Self]:
        """Open a target of its own in a fork of the process that opened this session, until the block ends.

        Raises TargetError where it does not start beside the other's.
        """
        self._abandon()
        outcome = self._start()
        if isinstance(outcome, Failure):
            raise TargetError(outcome.message)
        self._used = False
        try:
            yield self
        finally:
            self.close()

    @property
    def can_be_entered(self) -> bool:
        """Check whether a fork of this process is as good a process for the target as one of its own: an
        assignor of ours, which is trusted to judge itself there, and with the same order of sets."""
        ours = self.target.hosted and ":" not in self.target.spec
        return ours and not sys.flags.hash_randomization and hasattr(os, "fork")

    @contextlib.contextmanager
    def entered(self) -> Iterator[Entered]:
        """Run the target in this process, a fork of the one that opened this session, until the block ends,
        which saves the conversation. What no reply can tell of, a hang or too much memory, ends the process.
        Raises TargetError where the target cannot be loaded beside the other's."""
        self._abandon()
        limit_memory(self._memory_mib)
        quiet()
        try:
            yield Entered(self.target.spec, self, self._start_seconds)
        finally:
            self.close()

    def _abandon(self) -> None:
        """Leave the processes of the target to the process that this one is a fork of."""
        for one in filter(None, (self, self._twin)):
            if one._child:
                one._child.abandon()
                one._child = None
            one._offsets = None  # its thread is in the other process
        self._twin = None

    def close(self) -> None:
        """Say bye and end the target, with everything it started; another request would start it anew."""
        self._bye()
        if self._offsets:
            self._offsets.close()
            self._offsets = None
        if self._twin:
            self._twin.close()

    def _bye(self) -> None:
        """End the process, if there is one."""
        if self._child:
            self._child.close(farewell=self._seen(bye_request(self._next())))
            self._child = None

    # --- the conversation ------------------------------------------------------------------------------

    def _start(self) -> Hello | Failure:
        """Start a process and hear its hello."""
        self.starts += 1
        self._led.clear()
        asks = self._broker().variables if self.target.lags else {}
        try:
            command, boxed = self.target.sized(self._memory_mib), self.target.sandbox
            environment = self._environment | asks
            self._child = Child(command, self._memory_mib, environment, kept=True, sandbox=boxed)
        except OSError as error:
            return Failure(FailureKind.CRASH, _not_run(self.target, error))
        try:
            self._send(hello_request())
            outcome = self._hear(HELLO_SEQ, self._start_seconds, decode_hello)
        except BaseException:
            self._end()
            raise
        if isinstance(outcome, Failure):
            self._end()
        return outcome

    def _exchange(self, requests: Sequence[_Request], decode: _Decode[_T]) -> list[_T | Failure]:
        """Send all requests and read the replies, up to one that ends the process. Raises OutOfTime."""
        if not requests:
            return []
        check_time(self.latest)
        self._used = True
        try:
            if self._child is None and self._lost is None:
                outcome = self._start()
                self._lost = _restart_failure(outcome) if isinstance(outcome, Failure) else None
            if self._lost:
                return [self._lost]
            self._send(*(line for _, line in requests))
            outcomes: list[_T | Failure] = []
            for seq, _ in requests:
                if self._child:
                    outcomes.append(self._hear(seq, self.call_seconds, decode))
            return outcomes
        except BaseException:  # ours or the user's interrupt: replies may be under way
            self._end()
            raise

    def _send(self, *lines: bytes) -> None:
        assert self._child
        self._child.send(self._seen(*lines))

    def _seen(self, *lines: bytes) -> bytes:
        """Return what is sent, once whoever observes has seen it."""
        if self._observe:
            for line in lines:
                self._observe(">", line)
        return b"".join(lines)

    def _hear(self, seq: int, seconds: float, decode: _Decode[_T]) -> _T | Failure:
        """Return the outcome of request ``seq``, the oldest one unanswered.

        Most of what a target says it has said before, with another number: what that meant is kept.
        """
        assert self._child
        try:
            line = self._child.line(min(time.monotonic() + seconds, self.latest))
            if self._observe:
                self._observe("<", line)
            heard = self._heard.setdefault(decode, {})
            begin = b'{"seq":%d,' % seq
            body = line[len(begin) :] if line.startswith(begin) else None
            if body in heard:
                known: _T = heard[body]
                return known
            message = from_line(line)
            if reply_seq(message) != seq:
                raise Garbage(f"expected the reply to request {seq}, got {show(line)}")
        except ProcessGone as gone:
            if gone.kind is FailureKind.TIMEOUT:  # also the one that was cut short
                check_time(self.latest)
            within = f" within {seconds:g} s" if gone.kind is FailureKind.TIMEOUT else ""
            slow = gone.kind is FailureKind.GARBAGE or self._child.returncode is None
            return self._fail(gone.kind, f"{gone}{within}", slow)
        except Garbage as garbage:
            return self._fail(FailureKind.GARBAGE, f"reply: {garbage}")
        try:
            reply = decode_reply(message)
            if isinstance(reply, RefusalReply):
                return Failure(FailureKind(reply.kind), reply.message, reply.detail)
            value = decode(reply)
        except Garbage as garbage:
            detail, slow = self._child.stderr(), len(line) > _LARGE
            return Failure(FailureKind.GARBAGE, f"reply: {garbage}", detail, slow)
        if body is not None and len(body) <= _LONGEST_KNOWN:
            if len(heard) >= _MOST_KNOWN:
                heard.clear()
            heard[body] = value
        return value

    def _fail(self, kind: FailureKind, message: str, slow: bool = False) -> Failure:
        """End the process and say what it left behind."""
        assert self._child
        if kind is FailureKind.TIMEOUT and self.target.stack_signal is not None:
            self._child.ask_for_stack(self.target.stack_signal)
        self._child.kill()
        return Failure(kind, message, self._end(), slow)

    def _end(self) -> str:
        """Get rid of the process, if there is one; the last of its stderr."""
        child, self._child = self._child, None
        if child is None:
            return ""
        self._ended += 1
        child.kill()
        return child.stderr()

    def _next(self) -> int:
        self._seq += 1
        return self._seq


# --- outcomes --------------------------------------------------------------------------------------------


def _restart_failure(failure: Failure) -> Failure:
    return Failure(failure.kind, f"cannot be started again: {failure.message}", failure.detail)


def _not_run(target: Target, error: OSError) -> str:
    """Say why a target was not started: of a sandbox that cannot be had, what to do."""
    if error.filename != SANDBOX:
        return f"cannot run {target.command[0]}: {error.strerror}"
    return "\n".join([f"{_NO_SANDBOX} {target.label}: {error.strerror}", *(_ADVICE if error.errno else ())])


def _start_error(target: Target, failure: Failure) -> TargetError:
    if failure.message.startswith(_NO_SANDBOX):
        return TargetError(*failure.message.splitlines())
    sees = [_SEES] if target.sandbox else []
    if target.stack_signal is not None and failure.kind is FailureKind.ERRORED:
        return TargetError(failure.message, *sees, detail=failure.detail)  # our own host has said it all
    last_lines = failure.detail.splitlines()[-10:]
    return TargetError(
        f"target does not start: {target.label}",
        failure.message,
        *(f"| {line}" for line in last_lines),
        *sees,
        'a target answers {"seq":0,"cmd":"hello","version":1} with one line: see protocol.schema.json',
        detail=failure.detail,
    )
