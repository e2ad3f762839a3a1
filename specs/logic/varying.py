"""How an action of the protocol is varied, and several variations of one action are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from rebalance_verifier.specs.logic.language import After, Effect, State, symbols_of

Change = Callable[[Effect], Effect]
"""What becomes of an action, as it is specified or varied already."""


def instead_of(original: Effect) -> Callable[[Effect], Effect]:
    """Return a function that takes the place of ``original`` and its name."""

    def named(effect: Effect) -> Effect:
        effect.__name__ = original.__name__
        return effect

    return named


def around(original: Effect) -> Callable[[Callable[..., None]], Effect]:
    """Return the function, of which the first argument is the action that it varies, does so to ``original``.

    It can be done to what other variations have made of that action: ``together``.
    """

    def named(varies: Callable[..., None]) -> Effect:
        def change(effect: Effect) -> Effect:
            @wraps(effect)
            def varied(s: State, t: After, *parameters: Any) -> None:
                varies(effect, s, t, *parameters)

            return varied

        return _by(change, original)

    return named


def _by(change: Change, original: Effect) -> Effect:
    """Return what ``change`` makes of ``original``, which remembers the change."""
    varied = change(original)
    varied.change = change  # type: ignore[attr-defined]
    return varied


def together(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Actions varied by several variations at once: one for each name.

    Those that are replaced come first, then what is done to them, in the order given, and last what they end
    with. Raises ValueError where two replace the same action.
    """
    made: dict[str, Effect] = {}
    changes: list[tuple[str, Change, Effect]] = []
    for effect in dict.fromkeys(effects):
        change: Change | None = getattr(effect, "change", None)
        if change is not None:
            changes.append((effect.__name__, change, effect))
        elif effect.__name__ in made:
            raise ValueError(f"two variations replace {effect.__name__!r}")
        else:
            made[effect.__name__] = effect
    for name, change, effect in sorted(changes, key=lambda one: hasattr(one[2], "last")):
        made[name] = change(made[name]) if name in made else effect
    return tuple(made.values())


def without(symbol: str, effect: Effect) -> Effect:
    """``effect`` without its conditions on ``symbol``."""

    def change(inner: Effect) -> Effect:
        @wraps(inner)
        def looser(s: State, t: After, *parameters: Any) -> None:
            inner(s, t, *parameters)
            t._guards[:] = [guard for guard in t._guards if symbol not in symbols_of(guard)]

        return looser

    return _by(change, effect)


def afterwards(then: Effect) -> Callable[[Effect], Effect]:
    """Return what makes of an effect one that ends with ``then``."""

    def change(effect: Effect) -> Effect:
        @wraps(effect)
        def varied(s: State, t: After, *parameters: Any) -> None:
            effect(s, t, *parameters)
            then(s, t, *parameters)

        return varied

    def ending(effect: Effect) -> Effect:
        varied = _by(change, effect)
        varied.last = True  # type: ignore[attr-defined]
        return varied

    return ending
