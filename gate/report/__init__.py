"""Renderings of a finished run; none of them imports an engine.

``WRITERS`` has every format by the name that ``--report`` takes. Its functions import on first use:
the command line reads the names long before it has a result.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance.gate.report.cases import Report
    from rebalance.gate.result import Result


def _text(result: Result) -> str:
    from rebalance.gate.report.text import render

    return render(result)


def _json(result: Result) -> str:
    from rebalance.gate.report.data import render

    return render(result)


def _html(result: Result) -> str:
    from rebalance.gate.report.html import render

    return render(result)


def _ci(name: str) -> Callable[[Report], str]:
    """The function ``render`` of a module that knows cases only."""

    def render(report: Report) -> str:
        made: str = import_module(f"rebalance.gate.report.{name}").render(report)
        return made

    return render


def _of_check(render: Callable[[Report], str]) -> Callable[[Result], str]:
    def of_result(result: Result) -> str:
        from rebalance.gate.report import cases_of

        return render(cases_of.result(result))

    return of_result


CI_WRITERS: dict[str, tuple[str, Callable[[Report], str]]] = {
    "junit": ("junit.xml", _ci("junit")),
    "sarif": ("report.sarif", _ci("sarif")),
    "markdown": ("report.md", _ci("markdown")),
    "badge": ("badge.json", _ci("badge")),
}
"""The formats of CI systems, which every command can write: format -> (file name, function)."""

WRITERS: dict[str, tuple[str, Callable[[Result], str]]] = {
    "text": ("report.txt", _text),
    "json": ("report.json", _json),
    "html": ("report.html", _html),
    **{name: (file, _of_check(render)) for name, (file, render) in CI_WRITERS.items()},
}
"""The formats of `rebalance check`: format -> (file name in the run directory, function)."""
