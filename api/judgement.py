"""The answer of every judging function: one record, whatever was judged."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rebalance_verifier.base.installation import OF_EXTRAS, how_to_get
from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.reading import reason
from rebalance_verifier.base.verdict import Exit, Level, Verdict

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.exploration import Explored
    from rebalance_verifier.gate.search.result import Result
    from rebalance_verifier.pipeline.audit.result import Audited


class CannotJudge(ValueError):
    """Raised where nothing can be judged: a target that does not start, an unknown name, a missing file.

    The text says in a line or two what is wrong and what to write instead, as the command does.
    """


@dataclass(frozen=True, kw_only=True)
class JudgedFinding:
    """One broken clause with the evidence.

    Attributes:
        clause: the id of the clause or check; docs/reference/clauses.md lists them.
        level: how bad a breach of it is.
        rule: the sentence that must hold.
        summary: the breach in one sentence.
        about: the rebalance protocol, or the group and the partition of a log.
        certain: false where a breach was not confirmed, or where clocks that differ may explain it.
        gates: true where it fails a run of the level that was asked for.
    """

    clause: str
    level: Level
    rule: str
    summary: str
    about: str = ""
    certain: bool = True
    gates: bool = True
    _text: Callable[[], str] = field(repr=False, compare=False)
    _save: Callable[[Path], Path] = field(repr=False, compare=False)

    @property
    def trace(self) -> dict[str, Any]:
        """The counterexample as JSON values: the document that `rebalance show` and `replay` read."""
        document: dict[str, Any] = json.loads(self._text())
        return document

    def save(self, directory: str | Path) -> Path:
        """Write the trace to `directory` and return its file, for `rebalance show FILE` and `replay FILE`.

        Raises OSError.
        """
        return self._save(Path(directory))


@dataclass(frozen=True, kw_only=True, repr=False)
class Judgement:
    """The answer of `check`, `explore` and `audit`; true where the verdict is conformant, and only there.

    Attributes:
        verdict: conformant, violation or inconclusive.
        exit_code: the exit code of the command that asks the same: 0, 1 or 3.
        headline: the first line of the report.
        findings: what broke, the worst first; a finding on a list of known ones is not among them.
    """

    verdict: Verdict
    exit_code: int
    headline: str
    findings: tuple[JudgedFinding, ...]
    _json: dict[str, Any]
    _text: Callable[[], str] = field(compare=False)
    _html: Callable[[], str] = field(compare=False)

    def __bool__(self) -> bool:
        return self.exit_code == Exit.CONFORMANT

    def __repr__(self) -> str:
        return f"<Judgement {self.headline}>"

    def __str__(self) -> str:
        return self._text().rstrip("\n")

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values, by the schema of the command that asks the same."""
        document: dict[str, Any] = json.loads(json.dumps(self._json))
        return document

    def to_html(self) -> str:
        """Return the report as one page of HTML, with a chart of each finding."""
        return self._html()


_T = TypeVar("_T", "Result", "Explored", "Audited")


def judgement_of(
    judged: _T,
    findings: Iterable[JudgedFinding],
    headline: Callable[[_T], str],
    *,
    document: Callable[[_T], dict[str, Any]],
    text: Callable[[_T], str],
    page: Callable[[_T], str],
) -> Judgement:
    """Return the answer that a finished check, exploration or audit gives, by what reports it.

    Raises KeyboardInterrupt where it was interrupted: Ctrl-C ends a function of the API as it ends any.
    """
    if judged.interrupted:
        raise KeyboardInterrupt
    return Judgement(
        verdict=judged.verdict,
        exit_code=int(judged.exit),
        headline=headline(judged),
        findings=tuple(findings),
        _json=document(judged),
        _text=partial(text, judged),
        _html=partial(page, judged),
    )


def several(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return values that a parameter takes, each once; a single one need not be in a list."""
    return tuple(dict.fromkeys([given] if isinstance(given, str) else given))


def one_of(name: str, given: str, known: Iterable[object]) -> str:
    """Return a value that a parameter takes. Raises CannotJudge for another."""
    names = [str(one) for one in known]
    if str(given) not in names:
        raise CannotJudge(f"{name}: {unknown(name.removesuffix('s'), str(given), names)}")
    return given


@contextlib.contextmanager
def judging(*errors: type[Exception]) -> Iterator[None]:
    """Turn these errors, and an extra that is not installed, into CannotJudge.

    Texts of the command name an option first, which is a parameter here.
    """
    try:
        yield
    except CannotJudge:
        raise
    except errors as error:
        named = re.sub(r"^--([\w-]+)(?=:? )", lambda option: option[1].replace("-", "_"), reason(error))
        raise CannotJudge(named) from error
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OF_EXTRAS:
            raise
        raise CannotJudge(f"needs more: {how_to_get(OF_EXTRAS[package])} ({error})") from error
