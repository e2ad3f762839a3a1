"""Statements of Python source, read once: tests that hold rules over the whole tree share them."""

from __future__ import annotations

import ast
import re
from functools import cache

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

TOKENS = re.compile(
    r'''(?P<comment>\#[^\n]*)
    | (?P<text>[rRbBfFuU]*"""(?:[^\\]|\\.)*?""")
    | \'\'\'(?:[^\\]|\\.)*?\'\'\' | "(?:[^"\\\n]|\\.)*" | \'(?:[^\'\\\n]|\\.)*\' ''',
    re.S | re.X,
)
"""Comments, and strings of which some may have a # in them: eight times as fast as `tokenize`."""


@cache
def tree(source: str) -> ast.Module:
    """Parse a module."""
    return ast.parse(source)


@cache
def statements(source: str) -> tuple[tuple[ast.stmt, bool], ...]:
    """Return each statement of a module, and whether it is in a function; a tenth of the nodes."""
    found: list[tuple[ast.stmt, bool]] = []
    left: list[tuple[ast.AST, bool]] = [(tree(source), False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, ast.stmt):
            found.append((node, inside))
        inside = inside or isinstance(node, FUNCTIONS)
        for name in ("finalbody", "orelse", "handlers", "cases", "body"):
            left += ((child, inside) for child in reversed(getattr(node, name, ())))
    return tuple(found)
