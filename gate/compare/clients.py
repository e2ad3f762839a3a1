"""Which releases of which clients stand in the public result table: data, to columns of a comparison.

``clients.json`` names what the suite can fetch by itself; a file of the same form adds others. What is newest
is not in them: the registries know (`live.artifacts.registries`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from rebalance_verifier.base import saved as files
from rebalance_verifier.gate.compare.compare import UNKNOWN, TargetColumn
from rebalance_verifier.live.artifacts.registries import parsed
from rebalance_verifier.model import codec
from rebalance_verifier.model.bugs.releases import newest_of_minors, released, version

SCHEMA = 1


class ClientsError(ValueError):
    """A file that says something else, or a client that is in none; the text says where and what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedClient:
    """``target`` is the spec of its assignors, with ``{assignor}``, ``{class}`` and ``{release}`` in it.

    ``assignors`` are pairs of protocol name and class; ``releases`` those that matter for themselves, the
    oldest first, "" being whatever the target says of itself; ``since`` the first release with an assignor
    that older ones have not; ``page`` the name of its page, its own name without one.

    ``package`` is what its registry knows it by, as `live.artifacts.registries` writes it, "" where it is in
    none; ``minors_since`` the release from which on the newest of each minor series is wanted too.
    """

    name: str
    target: str
    assignors: tuple[tuple[str, str], ...]
    releases: tuple[str, ...]
    since: tuple[tuple[str, str], ...] = ()
    page: str = ""
    package: str = ""
    minors_since: str = ""

    def columns(
        self,
        releases: Sequence[str] = ("all",),
        assignors: Sequence[str] = (),
        existing: Sequence[str] = (),
    ) -> list[TargetColumn]:
        """Return its assignors in these releases: ``all`` those of `chosen`, ``newest`` the last of them.

        ``assignors`` are those to take, all without any; ``existing`` the releases of its package, the oldest
        first, none where they are not known.
        """
        wanted = tuple(releases)
        if "all" in wanted:
            wanted = self.chosen(existing)
        elif "newest" in wanted:
            named, last = [one for one in wanted if one != "newest"], self.chosen(existing)[-1:]
            wanted = released((*named, *last)) if named else last  # some clients have none but ""
        newest = existing[-1] if existing else UNKNOWN if self.package else ""
        since = dict(self.since)
        return [
            TargetColumn(
                spec=self.target.format_map({"assignor": name, "class": kind, "release": release}),
                label=release,
                client=self.name,
                assignor=name,
                page=self.page or self.name,
                newest=newest,
            )
            for name, kind in self.assignors
            if not assignors or name in assignors
            for release in wanted
            if name not in since or version(release) >= version(since[name])
        ]

    def has(self, assignors: Sequence[str] | None) -> bool:
        """Check whether it has one of them, or any without."""
        return not assignors or any(name in assignors for name, _ in self.assignors)

    @property
    def fetched(self) -> bool:
        """Check whether its target is fetched by release; another is whatever stands there."""
        return "{release}" in self.target

    def chosen(self, existing: Sequence[str]) -> tuple[str, ...]:
        """Return the releases to show, the oldest first: what is named, and of those that exist the newest of
        each minor series that is wanted, and the newest of all."""
        if not self.package or not self.fetched:
            return self.releases
        series = newest_of_minors(existing, self.minors_since) if self.minors_since else ()
        return released((*self.releases, *series, *existing[-1:]))


def pinned() -> tuple[PinnedClient, ...]:
    """Return the clients that need nothing but a network: reference assignors, Java, Python."""
    text = resources.files("rebalance_verifier.gate.compare").joinpath("clients.json").read_text("utf-8")
    return _parse(json.loads(text))


def read(path: Path) -> tuple[PinnedClient, ...]:
    """Return the clients of a file. Raises ClientsError."""
    try:
        return _parse(files.read_json(path))
    except files.TraceError as error:
        if isinstance(error.__cause__, OSError):
            raise ClientsError(f"{path}: {error.__cause__.strerror}") from error
        raise ClientsError(f"{path} is no list of clients: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ClientsError(
            f"{path} is no list of clients as gate/compare/clients.json is one: {what}"
        ) from error


def _parse(data: Any) -> tuple[PinnedClient, ...]:
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']}, this release reads {SCHEMA}")
    return tuple(map(_client, data["clients"]))


def _client(item: dict[str, Any]) -> PinnedClient:
    assignors = item["assignors"]
    pairs = assignors.items() if isinstance(assignors, dict) else [(name, name) for name in assignors]
    written = {**item, "assignors": [*map(list, pairs)], "since": [*map(list, item.get("since", {}).items())]}
    client = codec.from_json(PinnedClient, written, item["name"])
    if client.package:
        parsed(client.package)
        for release in filter(None, (*client.releases, client.minors_since)):
            version(release)
    client.columns()  # does the target have places for other things?
    return client
