"""Properties that are computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class Lazy:
        """``functools.cached_property`` without its lock, which Python up to 3.11 takes for each: that took
        a tenth of the time of judging answers."""

        def __init__(self, compute: Any) -> None:
            self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.compute(instance)
            return value

    lazy = Lazy


__all__ = ["lazy"]
