"""pytest plugin: one line turns an assignor into a set of clause tests with stable ids.

    from rebalance.gate.pytest_plugin import conformance

    test_contract = conformance("my_package.assignors:MyAssignor")

gives ``test_contract[kip429/leader/4-cooperative]`` and its siblings. The search runs once for all of
them, with the first. This module is loaded into every pytest run of every project that has the suite
installed, so it imports no engine until a test asks for one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rebalance.gate.result import ClauseResult, Result

OPTIONS = {
    "target": "assignor to judge where conformance() names none",
    "profile": "smoke, ci, nightly or deep (default: ci)",
    "seed": "seed of the search (default: 0)",
    "level": "weakest level that fails a test: safety, liveness or quality (default: liveness)",
    "known-failing": "PATTERN or @FILE of violations to expect",
    "report-dir": "where counterexamples are saved (default: .rebalance)",
}
DEFAULTS = {"profile": "ci", "seed": "0", "level": "liveness", "report-dir": ".rebalance"}
SEARCHED = "search/complete"
"""Id of the test that fails when the search was inconclusive."""

_results = pytest.StashKey[dict[int, "Result"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rebalance", "verification of Kafka partition assignors")
    for name, text in OPTIONS.items():
        group.addoption(f"--rebalance-{name}", metavar="X", help=text)
        parser.addini(f"rebalance-{name}", text)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_results] = {}
    for marker in ("clause(id)", "protocol(name)", "level(name)"):
        config.addinivalue_line("markers", f"{marker}: set by conformance() on its tests, for -m")


def pytest_report_header(config: pytest.Config) -> str | None:
    given = [
        f"{name}={value}" for name in OPTIONS if (value := _option(config, name)) and _is_set(config, name)
    ]
    return f"rebalance-verifier: {', '.join(given)}" if given else None


def _is_set(config: pytest.Config, name: str) -> bool:
    return bool(config.getoption(f"--rebalance-{name}") or config.getini(f"rebalance-{name}"))


def _option(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"--rebalance-{name}") or config.getini(f"rebalance-{name}")
    return str(given or DEFAULTS.get(name, ""))


def conformance(target: Any = None) -> Callable[..., None]:
    """A parametrised test function that judges ``target``; assign it to a name that starts with test.

    ``target`` is what ``rebalance check`` takes (it runs in a process of its own, so a hang or a crash
    is a failed test), or an assignor object, class or function (it runs in this process), or ``None``
    for ``--rebalance-target``. A broken clause fails its test with the minimised counterexample;
    clauses weaker than ``--rebalance-level`` xfail instead; what the target does not support is
    skipped with the reason; a known failure that is fixed fails.
    """
    from rebalance.properties.clauses import TABLE

    cases = [
        pytest.param(
            f"{clause.id}-{protocol}",
            id=f"{clause.id}-{protocol}",
            marks=[
                pytest.mark.clause(clause.id),
                pytest.mark.protocol(str(protocol)),
                pytest.mark.level(str(clause.level)),
            ],
        )
        for clause in TABLE
        for protocol in clause.protocols
    ]

    @pytest.mark.parametrize("rebalance_case", [*cases, pytest.param(SEARCHED, id=SEARCHED)])
    def test(rebalance_case: str, request: pytest.FixtureRequest) -> None:
        result = _result(request.config, target)
        if rebalance_case == SEARCHED:
            if result.missed:
                pytest.fail(f"inconclusive: {'; '.join(result.missed)}", pytrace=False)
            return
        row = next(r for r in result.clauses if r.id == rebalance_case)
        _settle(row, result, request)

    return test


def _result(config: pytest.Config, target: Any) -> Result:
    """The finished check of ``target``, run on the first request."""
    from rebalance.gate import known, traces
    from rebalance.gate.check import PROFILES, Plan, check, describe
    from rebalance.gate.judgement import allow
    from rebalance.gate.session import InProcess, Session
    from rebalance.gate.targets import resolve
    from rebalance.properties.clauses import Level

    target = target if target is not None else _option(config, "target")
    if not target:
        raise pytest.UsageError("conformance() names no target: give it one, or --rebalance-target")
    done = config.stash[_results]
    key = hash(target) if isinstance(target, str) else id(target)
    if key not in done:
        plan = Plan(
            profile=PROFILES[_option(config, "profile")],
            seed=int(_option(config, "seed")),
            level=Level(_option(config, "level")),
        )
        failing = known.read([_option(config, "known-failing")] if _is_set(config, "known-failing") else [])
        spec = target if isinstance(target, str) else f"{type(target).__name__} (in process)"
        with Session(resolve(target)) if isinstance(target, str) else InProcess(target) as session:
            result = check(plan, session, describe(spec, session.hello), fresh=session.close)
        result = allow(result, failing, (), date.today())
        with contextlib.suppress(OSError):  # a read-only checkout still gets its verdict
            result = traces.save_all(result, Path(_option(config, "report-dir")))
        done[key] = result
    return done[key]


def _settle(row: ClauseResult, result: Result, request: pytest.FixtureRequest) -> None:
    """Turn one row of the clause matrix into what pytest says of its test."""
    from rebalance.gate.judgement import gates
    from rebalance.gate.report.chart import chart
    from rebalance.gate.result import Status
    from rebalance.properties.clauses import Level, violation

    item = request.node
    item.user_properties += [("clause", row.clause.id), ("kip", row.clause.rule)]
    finding = row.finding
    if finding is not None and finding.path:
        item.user_properties.append(("trace", finding.path))
    match row.status:
        case Status.UNSUPPORTED | Status.UNTESTED:
            pytest.skip(row.note)
        case Status.FIXED:
            pytest.fail(f"{row.id} is on the list of known failures and holds: {row.note}", pytrace=False)
        case Status.KNOWN | Status.FLAKY if finding is not None:
            pytest.xfail(f"known: {finding.breach.summary}")
        case Status.VIOLATED if finding is not None:
            if not gates(row.clause, Level(result.level)):
                pytest.xfail(f"{row.clause.level}, informational: {finding.breach.summary}")
            error = violation(row.clause, finding.breach, finding.scenario)
            error.add_note("\n".join(chart(finding)))
            if finding.trace_id:
                error.add_note(f"replay: rebalance replay {finding.trace_id}    trace: {finding.path}")
            item.stash[_chart] = "\n".join(chart(finding))
            raise error


_chart = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ownership chart as a section of its own."""
    report = yield
    if report.when == "call" and report.failed and _chart in item.stash:
        report.sections.append(("ownership", item.stash[_chart]))
    return report


__all__ = ["conformance"]
