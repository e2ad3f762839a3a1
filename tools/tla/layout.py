"""How a TLA+ formula is laid out: precedence, parentheses, and lists by indentation where a line is too long.

A ``TlaNode`` is a formula that knows how tight it binds; it can be written on one line (``flat``) or on
several (``broken``). In a list of ``/\\`` or ``\\/`` an item ends where something stands under or
left of its bullet, so that items need no parentheses and everything that belongs to one has to stand right of
its bullet.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 108
"""No line is longer, but for what cannot be broken."""
LONG = 96
"""A formula longer than this is laid out on several lines."""

# Levels of precedence, loosest first. Both junctions have one: TLA+ refuses a /\ b \/ c.
OPEN_ENDED, ARROW, JUNCTION, NEGATION, COMPARISON, ATOM = range(6)


class TlaNode:
    """A formula, ready for layout."""

    level = ATOM

    def flat(self) -> str:
        """On one line."""
        raise NotImplementedError

    def broken(self, room: int) -> list[str]:
        """On several lines, where it can be broken, at most ``room`` wide."""
        return [self.flat()]

    def lines(self, room: int) -> list[str]:
        """On one line if it is short enough."""
        flat = self.flat()
        return [flat] if len(flat) <= min(room, LONG) else self.broken(room)

    def above(self, level: int) -> TlaNode:
        """In parentheses unless it binds tighter than ``level``."""
        return self if self.level > level else Parentheses(self)


@dataclass(frozen=True)
class Text(TlaNode):
    """What is never broken."""

    text: str
    level: int = ATOM

    def flat(self) -> str:
        return self.text


TRUE, FALSE = Text("TRUE"), Text("FALSE")


@dataclass(frozen=True)
class Parentheses(TlaNode):
    """``( inner )``."""

    inner: TlaNode

    def flat(self) -> str:
        return f"({self.inner.flat()})"

    def broken(self, room: int) -> list[str]:
        return close(hang("(", self.inner.lines(room - 2)), ")")


@dataclass(frozen=True)
class Negation(TlaNode):
    """``~inner``."""

    inner: TlaNode
    level = NEGATION

    def flat(self) -> str:
        return "~" + self.inner.above(COMPARISON).flat()

    def broken(self, room: int) -> list[str]:
        return hang("~", self.inner.above(COMPARISON).lines(room - 1))


@dataclass(frozen=True)
class Junction(TlaNode):
    r"""``/\`` or ``\/`` of at least two."""

    operator: str
    items: tuple[TlaNode, ...]
    level = JUNCTION

    def flat(self) -> str:
        return f" {self.operator} ".join(item.above(JUNCTION).flat() for item in self.items)

    def broken(self, room: int) -> list[str]:
        return [line for item in self.items for line in hang(self.operator + " ", item.lines(room - 3))]


@dataclass(frozen=True)
class Arrow(TlaNode):
    """``=>`` or ``<=>``. A list on its left has to stand further right than the arrow, or it would take the
    arrow into its last item."""

    operator: str
    left: TlaNode
    right: TlaNode
    level = ARROW

    def flat(self) -> str:
        return f"{self.left.above(ARROW).flat()} {self.operator} {self._right().flat()}"

    def broken(self, room: int) -> list[str]:
        margin = len(self.operator) + 1
        left = self.left.above(ARROW).lines(room - margin)
        if len(left) == 1:
            return [f"{left[0]} {self.operator}", *indent(2, self._right().lines(room - 2))]
        return [*indent(margin, left), *hang(self.operator + " ", self._right().lines(room - margin))]

    def _right(self) -> TlaNode:
        return self.right if self.right.level == OPEN_ENDED else self.right.above(ARROW)


@dataclass(frozen=True)
class Quantifier(TlaNode):
    """A head and everything that follows: a quantifier."""

    head: str
    body: TlaNode
    level = OPEN_ENDED

    def flat(self) -> str:
        return f"{self.head} {self.body.flat()}"

    def broken(self, room: int) -> list[str]:
        return [self.head, *indent(2, self.body.lines(room - 2))]


@dataclass(frozen=True)
class IfThenElse(TlaNode):
    """``IF condition THEN yes ELSE no``."""

    condition: TlaNode
    yes: TlaNode
    no: TlaNode
    level = OPEN_ENDED

    def flat(self) -> str:
        return f"{self._head()} ELSE {self.no.flat()}"

    def broken(self, room: int) -> list[str]:
        if self._has_short_head(room):
            head = [self._head()]
        else:
            yes = self.yes.above(OPEN_ENDED)
            head = hang("IF ", self.condition.lines(room - 3)) + hang("THEN ", yes.lines(room - 5))
        if isinstance(self.no, IfThenElse) and self.no._has_short_head(room - 5):
            first, *rest = self.no.broken(room)
            return [*head, f"ELSE {first}", *rest]
        return head + hang("ELSE ", self.no.lines(room - 5))

    def _has_short_head(self, room: int) -> bool:
        return len(self._head()) <= min(room, LONG)

    def _head(self) -> str:
        return f"IF {self.condition.flat()} THEN {self.yes.above(OPEN_ENDED).flat()}"


@dataclass(frozen=True)
class Comparison(TlaNode):
    """``=`` or ``#``."""

    left: TlaNode
    operator: str
    right: TlaNode
    level = COMPARISON

    def flat(self) -> str:
        return f"{self.left.above(COMPARISON).flat()} {self.operator} {self.right.above(COMPARISON).flat()}"

    def broken(self, room: int) -> list[str]:
        left = self.left.above(COMPARISON).lines(room - 2)
        right = self.right.above(COMPARISON).lines(room - 2)
        return [*close(left, " " + self.operator), *indent(2, right)]


@dataclass(frozen=True)
class VariableAssignment(TlaNode):
    """``variable = value``, as an item of a list or at the end of a scope."""

    variable: str
    value: TlaNode
    level = OPEN_ENDED

    def flat(self) -> str:
        return f"{self.variable} = {self._value().flat()}"

    def broken(self, room: int) -> list[str]:
        return [f"{self.variable} =", *indent(2, self._value().lines(room - 2))]

    def _value(self) -> TlaNode:
        return self.value if isinstance(self.value, IfThenElse) else self.value.above(COMPARISON)


@dataclass(frozen=True)
class Brackets(TlaNode):
    """``[head item, item]``, each item a prefix and a value."""

    head: str
    items: tuple[tuple[str, TlaNode], ...]

    def flat(self) -> str:
        return f"[{self.head} {', '.join(prefix + value.flat() for prefix, value in self.items)}]"

    def broken(self, room: int) -> list[str]:
        lines = ["[" + self.head]
        for number, (prefix, value) in enumerate(self.items, 1):
            item = hang(prefix, value.lines(room - 3 - len(prefix)))
            lines += indent(2, close(item, "]" if number == len(self.items) else ","))
        return lines


def listed(operator: str, items: Sequence[TlaNode]) -> list[str]:
    """A definition's body: always a list, however short; at least one item."""
    return Junction(operator, tuple(items)).broken(WIDTH - 2)


def definition(head: str, body: Sequence[str]) -> list[str]:
    """``head == body``."""
    return [f"{head} ==", *indent(2, body)]


def comment(text: str) -> list[str]:
    r"""``text`` behind ``\*``, its lines kept and wrapped."""
    return [
        f"\\* {part}".rstrip()
        for line in text.splitlines()
        for part in textwrap.wrap(line, WIDTH - 3, break_long_words=False, break_on_hyphens=False) or [""]
    ]


def filled(head: str, names: Sequence[str], tail: str) -> list[str]:
    """``head a, b, c tail``, on as many lines as it takes."""
    wrapped = textwrap.wrap(", ".join(names), WIDTH - len(head) - len(tail) - 2)
    return close(hang(head, wrapped), tail)


def indent(margin: int, lines: Sequence[str]) -> list[str]:
    """``lines`` further right."""
    return [" " * margin + line for line in lines]


def hang(prefix: str, lines: Sequence[str]) -> list[str]:
    """``lines`` right of ``prefix``."""
    return [prefix + lines[0], *indent(len(prefix), lines[1:])]


def close(lines: Sequence[str], end: str) -> list[str]:
    """``lines`` and ``end``."""
    return [*lines[:-1], lines[-1] + end]
