"""Lists of known failures: which clauses a target is allowed to break, and why.

One pattern per line, then a comment that says why, best a link to an issue::

    kip54/sticky/1              # https://example.org/issues/12
    kip429/**-cooperative       # https://example.org/issues/13 until=2027-01-31

A pattern is a clause id; ``*`` stands for one part of it, ``**`` for any number of parts. It means both
protocols, or only one with ``-eager`` or ``-cooperative`` at its end; and all causes, or only the one that
follows an ``@``, as in ``kip792/claim/1@unequal+stale``. From the day after ``until`` on the line allows
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from rebalance_verifier.base import known
from rebalance_verifier.base.known import UNTIL, KnownEntry
from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.values import RebalanceProtocol

if TYPE_CHECKING:
    from rebalance_verifier.gate.search.result import ClauseResult, Finding

_SUFFIXES = tuple(f"-{protocol}" for protocol in RebalanceProtocol)
_PART = re.compile(r"\*{1,2}|[A-Za-z0-9_.-]+")
_CAUSE = re.compile(r"[A-Za-z0-9_.-]+(\+[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure(KnownEntry):
    """One line of a list."""

    @classmethod
    def check(cls, pattern: str) -> None:
        """Raise ValueError for what is no pattern."""
        if " " in pattern or "\t" in pattern:
            raise ValueError(f"{pattern!r} holds a space: one pattern per line, the reason behind '#'")
        path, _ = _split(pattern)
        for part in path.split("/"):
            if "*" in part and part not in ("*", "**"):
                raise ValueError(f"{part!r} in {pattern!r}: '*' and '**' stand for whole parts only")
            if not _PART.fullmatch(part):
                raise ValueError(f"{pattern!r} is no pattern: write a clause id, such as kip429/leader/4")
        if "@" in pattern and not _CAUSE.fullmatch(cause := pattern.partition("@")[2]):
            raise ValueError(f"{pattern!r} names no cause behind '@': write it as a report does")
        if "@" in pattern:
            raising = ("assign/4-eager", "task/5-tasks", "task/5-streams")
            _check_cause(cause, raises=any(map(cls(pattern=pattern).about, raising)))

    @classmethod
    def check_typed(cls, pattern: str) -> None:
        """Raise ValueError for a pattern that means no clause."""
        from rebalance_verifier.properties.assignors.clauses import TABLE

        entry = cls(pattern=pattern)
        ids = {f"{clause.id}-{protocol}": clause.id for clause in TABLE for protocol in clause.protocols}
        if not any(map(entry.about, ids)):
            path, _ = _split(pattern)
            sentence = unknown("clause", path, dict.fromkeys(ids.values()), "rebalance list clauses")
            raise ValueError(f"{sentence}; a list in a file is @FILE")

    @property
    def cause(self) -> str:
        """The only cause that is meant, if not all are."""
        return self.pattern.partition("@")[2]

    def about(self, clause_id: str) -> bool:
        """Check whether an id with its protocol, such as ``kip54/sticky/1-eager``, is meant by any cause."""
        pattern, only = _split(self.pattern)
        path, protocol = _split(clause_id)
        return only in ("", protocol) and _match(pattern.split("/"), path.split("/"))

    def matches(self, name: str) -> bool:
        """Check whether an id with its protocol, and with ``@`` and its cause if that is known, is meant."""
        return self.cause in ("", name.partition("@")[2]) and self.about(name)


def _check_cause(cause: str, *, raises: bool) -> None:
    """Raise ValueError for a cause that no report can name. The first part may be the name of an exception
    where a target ``raises`` it."""
    from rebalance_verifier.base.processes.failure import FailureKind
    from rebalance_verifier.gate.scenarios.preconditions import BY_NAME
    from rebalance_verifier.gate.search.causes.attribution import Cause
    from rebalance_verifier.properties.assignors.settling import KINDS
    from rebalance_verifier.properties.assignors.task_clauses import TASK_KINDS

    first, *features = parts = cause.split("+")
    kinds = (*KINDS, *TASK_KINDS, *map(str, FailureKind))
    of_kind = first in kinds or (raises and first.isidentifier() and first not in (*BY_NAME, "plain"))
    kind, features = (first, features) if of_kind else ("", [one for one in parts if parts != ["plain"]])
    for part in features:
        if part not in BY_NAME:
            raise ValueError(f"@{cause}: {unknown('cause', part, ['plain', *BY_NAME, *kinds])}")
    if (spelled := Cause.of(kind, features).id) != cause:
        raise ValueError(f"@{cause}: a report has it as @{spelled}")


def _split(pattern: str) -> tuple[str, str]:
    path = pattern.partition("@")[0]
    suffix = next((s for s in _SUFFIXES if path.endswith(s)), "")
    return path.removesuffix(suffix), suffix


def _match(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_match(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and _match(pattern[1:], path[1:])


def parse(text: str, source: str) -> tuple[KnownFailure, ...]:
    """Return the entries of a list. Raises ``KnownError`` naming each wrong line as ``source:line``."""
    return known.parse(KnownFailure, text, source)


def read(options: Sequence[str], name: str = "--known-failing") -> tuple[KnownFailure, ...]:
    """Return the entries of several options, each a pattern or ``@FILE``. Raises ``KnownError``."""
    return known.read(KnownFailure, options, name, "--write-known {path} makes one")


def match(entries: Iterable[KnownFailure], clause_id: str, today: date) -> KnownFailure | None:
    """Return the first entry that allows this clause under this protocol to be broken today."""
    return next((e for e in entries if e.matches(clause_id) and not e.expired(today)), None)


def unmatched(
    entries: Iterable[KnownFailure], names: Iterable[str], *, by_cause: bool = True
) -> tuple[KnownFailure, ...]:
    """Return the entries that mean none of these: misspelt, or of a clause that is gone or was not run."""
    run = tuple(names)
    return tuple(e for e in entries if not any((e.matches if by_cause else e.about)(n) for n in run))


def causes_of(row: ClauseResult) -> list[str]:
    """Return what a broken clause is called in a list, once for each cause that it is seen to break by."""
    causes = [f"@{finding.cause.id}" if finding.cause else "" for finding in row.findings]
    return [row.id + cause for cause in causes or ("",)]


def write(results: Iterable[ClauseResult], old: Sequence[KnownFailure] = (), today: date = date.min) -> str:
    """Return the text of a list that allows exactly what is broken in ``results``, a cause a line.

    Lines of ``old`` that are still exact stay as they are, in their order. Of a line that meant too
    much, the narrower ones inherit the comment. No new line has a ``*``, which would allow clauses that
    do not exist yet; it is for both protocols only if the clause was run and broken so under all that the
    target supports. An ``until`` before ``today`` is dropped: writing the list is accepting the failure
    again. New lines say what is broken, for an issue link to replace.
    """
    from rebalance_verifier.gate.search.result import Status

    supported = [r for r in results if r.status is not Status.UNSUPPORTED]
    broken = {
        name: (row, finding)
        for row in supported
        if row.status in (Status.VIOLATED, Status.KNOWN)
        for name, finding in zip(causes_of(row), row.findings or (None,), strict=True)
    }
    held = {r.id for r in supported} - {name.partition("@")[0] for name in broken}
    lines: list[tuple[str, str]] = []
    left = frozenset(broken)
    for entry in old:
        meant = {name for name in (*broken, *held) if entry.matches(name)}
        if meant & left and meant <= broken.keys():
            lines.append((entry.pattern, _comment(entry, today)))
            left -= meant
    wanted: set[str] = set()
    for name in left:
        path, protocol, cause = _named(name)
        everywhere = {f"{path}{s}{cause}" for s in _SUFFIXES if any(r.id == f"{path}{s}" for r in supported)}
        wanted.add(path + cause if everywhere <= broken.keys() else path + protocol + cause)
    for pattern in sorted(wanted):
        news = sorted(name for name in left if KnownFailure(pattern=pattern).matches(name))
        heir = next((e for e in old if all(e.matches(name) for name in news)), None)
        lines.append((pattern, _comment(heir, today) if heir else _summary([broken[n] for n in news])))
    width = max((len(pattern) for pattern, _ in lines), default=0)
    return "".join(f"{pattern:{width}}  # {comment}\n" for pattern, comment in lines)


def _named(name: str) -> tuple[str, str, str]:
    """Return the parts of an id with its protocol, and with ``@`` and its cause if it has one."""
    path, protocol = _split(name)
    return path, protocol, name.removeprefix(path + protocol)


def _comment(entry: KnownFailure, today: date) -> str:
    kept = UNTIL.sub("", entry.comment) if entry.expired(today) else entry.comment
    return kept.strip() or "known before, no issue yet"


def _summary(broken: Sequence[tuple[ClauseResult, Finding | None]]) -> str:
    from rebalance_verifier.base.text import clean, cut

    row, finding = broken[0]
    summary = finding.breach.summary if finding else row.clause.sentence
    # Names of members come from outside; none of them shall set a date.
    return f"no issue yet: {cut(clean(summary), 80).replace('until=', 'until =')}"
