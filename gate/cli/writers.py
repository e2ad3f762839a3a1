"""The formats of reports by the names that ``--report`` takes; their functions import on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from rebalance.gate.traces.files import REPORTS

if TYPE_CHECKING:
    from rebalance.gate.check.result import Result
    from rebalance.gate.report.ci.cases import CiReport


def _ci(name: str) -> Callable[[CiReport], str]:
    """The function ``render`` of a module that knows cases only."""

    def render(report: CiReport) -> str:
        made: str = import_module(f"rebalance.gate.report.ci.{name}").render(report)
        return made

    return render


def _check(name: str) -> Callable[[Result], str]:
    """The function ``render`` of a module that knows a check only."""

    def render(result: Result) -> str:
        made: str = import_module(f"rebalance.gate.report.{name}").render(result)
        return made

    return render


def _of_check(render: Callable[[CiReport], str]) -> Callable[[Result], str]:
    def of_result(result: Result) -> str:
        from rebalance.gate.report.ci import ci_reports

        return render(ci_reports.result(result))

    return of_result


CI_WRITERS: dict[str, tuple[str, Callable[[CiReport], str]]] = {
    name: (REPORTS[name], _ci(name)) for name in ("junit", "sarif", "markdown")
}
"""The formats of CI systems, which every command can write: format -> (file name, function)."""

WRITERS: dict[str, tuple[str, Callable[[Result], str]]] = {
    "text": (REPORTS["text"], _check("terminal.check")),
    "json": (REPORTS["json"], _check("data")),
    "html": (REPORTS["html"], _check("html.check")),
    **{name: (file, _of_check(render)) for name, (file, render) in CI_WRITERS.items()},
}
"""The formats of `rebalance check`: format -> (file name in the run directory, function)."""
