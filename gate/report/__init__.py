"""Renderings of a finished run; none of them imports an engine.

``WRITERS`` has every format by the name that ``--report`` takes. Its functions import on first use:
the command line reads the names long before it has a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance.gate.result import Result


def _text(result: Result) -> str:
    from rebalance.gate.report.text import render

    return render(result)


def _json(result: Result) -> str:
    from rebalance.gate.report.data import render

    return render(result)


def _junit(result: Result) -> str:
    from rebalance.gate.report.junit import render

    return render(result)


def _markdown(result: Result) -> str:
    from rebalance.gate.report.markdown import render

    return render(result)


WRITERS: dict[str, tuple[str, Callable[[Result], str]]] = {
    "text": ("report.txt", _text),
    "json": ("report.json", _json),
    "junit": ("junit.xml", _junit),
    "markdown": ("report.md", _markdown),
}
"""Format -> (file name in the run directory, function)."""
