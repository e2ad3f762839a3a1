"""What to say of a name that is not known: what was meant perhaps, or what there is."""

from __future__ import annotations

from collections.abc import Iterable

LIKE = 0.6
"""How alike, from 0 to 1, a name has to be to be suggested."""

BEGUN = 0.9
"""How alike a name is at least to its own beginning."""

LONGEST = 160
"""Characters of a list that is still read; a longer one is named, not printed."""


def close(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three of the ``known`` names that are like this one, the likest first.

    >>> close("Pausee", ["pause", "crash"]), close("kip42", ["kip54", "kip429"]), close("x", ["red"])
    (('pause',), ('kip429',), ())
    """
    from difflib import SequenceMatcher  # in a function: it is needed where something is wrong only

    likeness: dict[str, float] = {}
    for candidate in known:
        ratio = SequenceMatcher(None, candidate.casefold(), name.casefold(), autojunk=False).ratio()
        likeness[candidate] = max(ratio, BEGUN) if name and candidate.startswith(name) else ratio
    least = max(LIKE, max(likeness.values(), default=0.0) - 0.1)
    found = sorted((-ratio, candidate) for candidate, ratio in likeness.items() if ratio >= least)
    return tuple(candidate for _, candidate in found[:3])


def meant(name: str, known: Iterable[str]) -> str:
    """Return the question whether another of the ``known`` names was meant, "" where none is like it.

    >>> meant("pausee", ["pause", "crash"])
    'did you mean pause?'
    """
    found = close(name, known)
    return f"did you mean {' or '.join(found)}?" if found else ""


def unknown(kind: str, name: str, known: Iterable[str], listed: str = "") -> str:
    """Return one line about a ``name`` that no thing of this ``kind`` has.

    ``listed``: the command that lists them, named where none is like it and they are many.

    >>> unknown("fault", "pausee", ["pause", "crash"])
    "no fault is called 'pausee': did you mean pause?"
    >>> unknown("fault", "x", ["pause", "crash"])
    "no fault is called 'x': there are pause, crash"
    >>> unknown("number", "x", map(str, range(100)), "rebalance list numbers")
    "no number is called 'x': `rebalance list numbers` has them"
    """
    known = tuple(known)
    every = f"there are {', '.join(known)}"
    if listed and len(every) > LONGEST:
        every = f"`{listed}` has them"
    return f"no {kind} is called {name!r}: {meant(name, known) or every}"
