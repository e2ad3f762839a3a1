"""A hundred ways to be hostile, in one Python target: a member called ``BAD name`` in the group picks one."""

import legion_answers  # type: ignore[import-not-found]  # noqa: F401
import legion_files  # type: ignore[import-not-found]  # noqa: F401
import legion_limits  # type: ignore[import-not-found]  # noqa: F401
import legion_outside  # type: ignore[import-not-found]  # noqa: F401
from legion_tries import FORGED, SECRET, TRIES, everything  # type: ignore[import-not-found]

__all__ = ["FORGED", "SECRET", "TRIES", "Legion"]


class Legion:
    """Deals every partition to the first member, unless a try is named."""

    name = "legion"
    promises = ()

    def assign(self, cluster, group):
        for member in group:
            if member.startswith("BAD "):
                return TRIES[member[4:]][2](cluster, group)
        return everything(cluster, group)
