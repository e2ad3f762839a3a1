"""pytest plugin: one line turns an assignor into a set of clause tests with stable ids.

    from rebalance_verifier import conformance

    test_contract = conformance("my_package.assignors:MyAssignor")

gives ``test_contract[kip429/leader/4-cooperative]`` and its siblings. The search runs once for all of
them, with the first, also with pytest-xdist: the worker that comes first shares what it found. This
module is loaded into every pytest run of every project that has the suite installed, so it imports no
engine until a test asks for one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeGuard

import pytest

if TYPE_CHECKING:
    from rebalance_verifier.gate.search.known import KnownFailure
    from rebalance_verifier.gate.search.plan import CheckPlan
    from rebalance_verifier.gate.search.result import ClauseResult, Result

OPTIONS = {
    "target": "assignor to judge where conformance() names none",
    "profile": "smoke, ci, nightly or deep (default: smoke)",
    "seed": "seed of the search (default: 0)",
    "level": "weakest level that fails a test: safety, liveness or quality (default: liveness)",
    "without": "kinds of input that the assignor is not made for, such as unequal,racks",
    "topics": "names of the topics of all scenarios, for an assignor that looks for names",
    "known-failing": "violations to expect: PATTERN, or @FILE (written with an equals sign: =@FILE)",
    "report-dir": "where counterexamples are saved (default: .rebalance)",
}
DEFAULTS = {"profile": "smoke", "seed": "0", "level": "liveness", "report-dir": ".rebalance"}
SEARCHED = "search/complete"
"""Id of the test that fails when the search was inconclusive, or the list of known failures out of date."""

PLUGIN = "rebalance"
"""Its name for pytest: `-p no:rebalance`."""

HOW_TO_LOAD = f"leave out `-p no:{PLUGIN}`, or where no plugin is loaded by itself, add `-p {PLUGIN}`"

_TARGET = "rebalance_target"
"""Attribute that tells a test of ours from all others."""


@dataclass(frozen=True)
class _NotJudged:
    """Why there is no result of a target; ``reported`` once a test has failed by it."""

    reason: str
    reported: bool = False


_results = pytest.StashKey[dict[Hashable, "Result | _NotJudged"]]()
"""The finished checks by target."""

_story = pytest.StashKey[str]()
"""The counterexample, to be shown below the failure."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rebalance", "verification of Kafka partition assignors")
    for name, text in OPTIONS.items():
        group.addoption(f"--rebalance-{name}", metavar="X", help=text)
        parser.addini(f"rebalance-{name}", text)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_results] = {}
    # With our name before them: a suite that never uses us may have a `level` of its own, or mistype one.
    for marker in ("clause(id)", "protocol(name)", "level(name)"):
        config.addinivalue_line("markers", f"rebalance_{marker}: set by conformance() on its tests, for -m")


def pytest_report_header(config: pytest.Config) -> str | None:
    given = [f"{name}={value}" for name in OPTIONS if (value := _given(config, name))]
    return f"rebalance-verifier: {', '.join(given)}" if given else None


@pytest.hookimpl(trylast=True)  # behind -k and -m: what was not chosen needs no target
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Refuse what cannot run at all, once and not test by test."""
    ours = [(item, vars(item.function)[_TARGET]) for item in items if _is_ours(item)]
    if not ours:
        return
    _plan(config)
    for item, target in ours:
        if not (target or _option(config, "target")):
            where = item.nodeid.partition("[")[0]
            raise pytest.UsageError(f"{where}: conformance() names no target, nor does --rebalance-target")


def _is_ours(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Tell a test of conformance(). Items of other plugins are not asked for anything: they may refuse."""
    return (
        isinstance(item, pytest.Function)
        and isinstance(item.function, FunctionType)
        and _TARGET in vars(item.function)
    )


def _given(config: pytest.Config, name: str) -> str:
    """Return the option, else the ini value, else nothing. Paths in an ini file are relative to it."""
    if value := config.getoption(f"--rebalance-{name}"):
        return str(value)
    value = str(config.getini(f"rebalance-{name}") or "")
    if name == "report-dir" and value:
        return str(config.rootpath / value)
    if name == "known-failing" and value.startswith("@"):
        return f"@{config.rootpath / value[1:]}"
    return value


def _option(config: pytest.Config, name: str) -> str:
    return _given(config, name) or DEFAULTS.get(name, "")


def conformance(
    target: Any = None, *, server_side: bool = False, protocol: str | None = None
) -> Callable[..., None]:
    """Return a parametrised test function that judges ``target``; assign it to a name that starts with test.

    ``target`` is what ``rebalance check`` takes (it runs in a process of its own, so a hang or a crash
    is a failed test), or an assignor object, class or function (it runs in this process), or ``None``
    for ``--rebalance-target``. A broken clause fails its test with the minimised counterexample;
    clauses weaker than ``--rebalance-level`` xfail instead; what the target does not support is
    skipped with the reason; a known failure that is fixed fails. ``server_side``: it is an assignor of a
    coordinator (KIP-848), and is asked as one. ``protocol``: it is one of share groups ("share", KIP-932), or
    of tasks of Kafka Streams ("tasks" in a client, "streams" on a broker).
    """
    from rebalance_verifier.model.values import CLASSIC, FAMILY, RebalanceProtocol
    from rebalance_verifier.properties.assignors.clauses import TABLE

    named = RebalanceProtocol(protocol) if protocol else RebalanceProtocol.CONSUMER if server_side else None
    family = FAMILY[named] if named else CLASSIC

    cases = [
        pytest.param(
            f"{clause.id}-{protocol}",
            id=f"{clause.id}-{protocol}",
            marks=[  # by keyword, as in -m "rebalance_clause(id='assign/1')"
                pytest.mark.rebalance_clause(id=clause.id),
                pytest.mark.rebalance_protocol(name=str(protocol)),
                pytest.mark.rebalance_level(name=str(clause.level)),
            ],
        )
        for clause in TABLE
        for protocol in clause.protocols
        if protocol in family
    ]

    @pytest.mark.parametrize("rebalance_case", [*cases, pytest.param(SEARCHED, id=SEARCHED)])
    def test(rebalance_case: str, request: pytest.FixtureRequest) -> None:
        if _results not in request.config.stash:
            pytest.fail(f"pytest is set up not to load the plugin `{PLUGIN}`: {HOW_TO_LOAD}", pytrace=False)
        result = _result(request, target)
        if isinstance(result, _NotJudged):
            if result.reported:  # 38 tests of it are one failure
                pytest.skip(f"not judged, as a test before has said: {result.reason.splitlines()[0]}")
            pytest.fail(result.reason, pytrace=False)
        if rebalance_case == SEARCHED:
            _settle_search(result)
        else:
            row = next((r for r in result.clauses if r.id == rebalance_case), None)
            if row is None:
                pytest.fail(f"{result.target.name}: write {_asked_as(result)}", pytrace=False)
            _settle(row, result, request.node)

    setattr(test, _TARGET, target)
    return test


def _asked_as(result: Result) -> str:
    """Return the argument of conformance() by which a target is asked the clauses of its own protocol."""
    own = result.target.protocols[0]
    if own in ("eager", "cooperative", "consumer"):
        return f"server_side={own == 'consumer'}"
    return f'protocol="{own}"'


def _plan(config: pytest.Config) -> CheckPlan:
    """Return the plan that the options ask for. Raises ``pytest.UsageError``."""
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.scenarios.exclusions import excluded
    from rebalance_verifier.gate.scenarios.topics import names_given
    from rebalance_verifier.gate.search.known import match
    from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan

    failing, today = _failing(config), date.today()
    choices = {"profile": tuple(PROFILES), "level": tuple(Level)}
    for name, known in choices.items():
        if _option(config, name) not in known:
            raise pytest.UsageError(
                f"--rebalance-{name}: {_option(config, name)!r} is none of {', '.join(known)}"
            )
    try:
        seed = int(_option(config, "seed"))
    except ValueError:
        raise pytest.UsageError(f"--rebalance-seed: {_option(config, 'seed')!r} is no number") from None
    try:
        left_out = excluded(name.strip() for name in _option(config, "without").split(",") if name.strip())
    except ValueError as error:
        raise pytest.UsageError(f"--rebalance-without: {error}") from None
    try:
        called = names_given([_option(config, "topics")] if _option(config, "topics") else ())
    except ValueError as error:
        raise pytest.UsageError(f"--rebalance-topics: {error}") from None
    return CheckPlan(
        profile=PROFILES[_option(config, "profile")],
        seed=seed,
        level=Level(_option(config, "level")),
        without=left_out,
        topics=called,
        expected=lambda key: match(failing, key, today) is not None,
    )


def _failing(config: pytest.Config) -> tuple[KnownFailure, ...]:
    from rebalance_verifier.gate.search import known

    given = _given(config, "known-failing")
    try:
        return known.read([given] if given else [], "--rebalance-known-failing")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


def _result(request: pytest.FixtureRequest, target: Any) -> Result | _NotJudged:
    """Return the finished check of ``target``, run on the first request of all workers, or why there is
    none."""
    config = request.config
    target = target or _option(config, "target")
    key = target if isinstance(target, str) else id(target)
    done = config.stash[_results]
    known = done.get(key)
    if known is None:
        known, ours = _shared(request, target)
        done[key] = known
        if ours:
            return known
    return replace(known, reported=True) if isinstance(known, _NotJudged) else known


def _shared(request: pytest.FixtureRequest, target: Any) -> tuple[Result | _NotJudged, bool]:
    """Return the check, and whether it was this process that ran it."""
    config = request.config
    if not hasattr(config, "workerinput"):
        return _check(config, target), True
    from rebalance_verifier.base.processes.compute_once import once

    # Two tests that judge two objects of one class have other functions.
    name = target if isinstance(target, str) else request.node.nodeid.partition("[")[0]
    file = f"rebalance-{hashlib.sha256(name.encode()).hexdigest()[:16]}.pickle"
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return once(factory.getbasetemp().parent / file, partial(_check, config, target))


def _check(config: pytest.Config, target: Any) -> Result | _NotJudged:
    from rebalance_verifier.api.checking import run_check
    from rebalance_verifier.api.judgement import CannotJudge
    from rebalance_verifier.gate.search import counterexamples
    from rebalance_verifier.gate.search.judgement import allow

    try:
        with _progress(config, isinstance(target, str)) as shown:
            result = run_check(target, _plan(config), **shown)
    except CannotJudge as error:
        return _NotJudged(str(error))
    result = allow(result, _failing(config), (), date.today())
    with contextlib.suppress(OSError):  # a read-only checkout still gets its verdict
        result = counterexamples.save_all(result, Path(_option(config, "report-dir")))
    return result


@contextlib.contextmanager
def _progress(config: pytest.Config, apart: bool) -> Iterator[dict[str, Any]]:
    """Yield what `check` is given to show how far it is, on a terminal; pytest's own line is left as it is.

    Not where the target is not in a process ``apart``: what it prints is for pytest to capture.
    """
    from rebalance_verifier.cli.commands.check import progress_of
    from rebalance_verifier.cli.console.progress import Stages, polled

    capture, reporter = map(config.pluginmanager.getplugin, ("capturemanager", "terminalreporter"))
    if not apart or capture is None or reporter is None or not reporter.isatty or config.option.verbose < 0:
        yield {}
        return
    stages = Stages()
    with capture.global_and_fixture_disabled():
        reporter.ensure_newline()
        with polled(argparse.Namespace(no_progress=False), stages.line):
            yield progress_of(stages)


def _settle_search(result: Result) -> None:
    """Turn what belongs to no clause into what pytest says of its test."""
    if result.stale_known:
        lines = "; ".join(result.stale_known)
        pytest.fail(f"the list of known failures matches no clause of the target: {lines}", pytrace=False)
    if result.missed:
        pytest.fail(f"inconclusive: {'; '.join(result.missed)}", pytrace=False)


def _settle(row: ClauseResult, result: Result, item: pytest.Item) -> None:
    """Turn one row of the clause matrix into what pytest says of its test."""
    from rebalance_verifier.base.text import clean
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search.result import Status
    from rebalance_verifier.report.terminal.check import block

    item.user_properties += [("clause", row.clause.id), ("kip", row.clause.rule)]
    finding = row.finding
    if finding is not None and finding.path:
        item.user_properties.append(("trace", finding.path))
    match row.status:
        case Status.UNSUPPORTED | Status.UNTESTED:
            pytest.skip(row.note)
        case Status.UNCONFIRMED:
            pytest.fail(f"inconclusive: {row.id} was broken in the search, and not again", pytrace=False)
        case Status.FIXED:
            pytest.fail(f"{row.id} holds: remove {row.note} from the known failures", pytrace=False)
        case Status.KNOWN | Status.FLAKY if finding is not None:
            pytest.xfail(f"known: {finding.breach.summary}")
        case Status.VIOLATED if finding is not None:
            if not row.clause.level.gates(Level(result.level)):
                pytest.xfail(f"{row.clause.level}, informational: {finding.breach.summary}")
            item.stash[_story] = "\n".join(block("VIOLATION", row))
            # The clause is in the name of the test, which stands before this in pytest's summary.
            replay = f"rebalance replay {finding.trace_id}: " if finding.trace_id else ""
            pytest.fail(f"{replay}{clean(finding.breach.summary)}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the counterexample below the failure, as a section of its own."""
    report = yield
    if report.when == "call" and report.failed and _story in item.stash:
        report.sections.append(("counterexample", item.stash[_story]))
    return report


__all__ = ["conformance"]
