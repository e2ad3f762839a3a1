"""Which releases of which clients stand in the public result table: data, to columns of a comparison.

``clients.json`` pins what the suite can fetch by itself; a file of the same form adds others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from rebalance.gate.compare import Column
from rebalance.model.releases import version

SCHEMA = 1


class ClientsError(ValueError):
    """A file that says something else, or a client that is in none; the text says where and what."""


@dataclass(frozen=True, slots=True)
class Client:
    """``target`` is the spec of its assignors, with ``{assignor}``, ``{class}`` and ``{release}`` in it.

    ``assignors`` are pairs of protocol name and class; ``releases`` the oldest first, "" being whatever the
    target says of itself; ``since`` the first release with an assignor that older ones have not; ``page`` the
    name of its page, its own name without one.
    """

    name: str
    target: str
    assignors: tuple[tuple[str, str], ...]
    releases: tuple[str, ...]
    since: tuple[tuple[str, str], ...] = ()
    page: str = ""

    def columns(self, releases: Sequence[str] = ("all",), assignors: Sequence[str] = ()) -> list[Column]:
        """Its assignors in these releases: ``all`` those that are pinned, ``newest`` the last of them.

        ``assignors`` are those to take, all without any.
        """
        chosen = tuple(releases)
        if chosen == ("all",):
            chosen = self.releases
        elif chosen == ("newest",):
            chosen = self.releases[-1:]
        since = dict(self.since)
        return [
            Column(
                self.target.format_map({"assignor": name, "class": kind, "release": release}),
                release,
                self.name,
                name,
                self.page or self.name,
            )
            for name, kind in self.assignors
            if not assignors or name in assignors
            for release in chosen
            if name not in since or version(release) >= version(since[name])
        ]


def pinned() -> tuple[Client, ...]:
    """The clients that need nothing but a network: reference assignors, Java, Python."""
    return _parse(resources.files("rebalance.gate").joinpath("clients.json").read_text("utf-8"))


def read(path: Path) -> tuple[Client, ...]:
    """The clients of a file. Raises ClientsError."""
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClientsError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ClientsError(f"{path} is no list of clients as gate/clients.json is one: {what}") from error


def _parse(text: str) -> tuple[Client, ...]:
    data = json.loads(text)
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']}, this release reads {SCHEMA}")
    return tuple(map(_client, data["clients"]))


def _client(item: dict[str, Any]) -> Client:
    assignors = item["assignors"]
    pairs = assignors.items() if isinstance(assignors, dict) else [(name, name) for name in assignors]
    client = Client(
        item["name"],
        item["target"],
        tuple(pairs),
        tuple(item["releases"]),
        tuple(item.get("since", {}).items()),
        item.get("page", ""),
    )
    client.columns()  # does the target have places for other things?
    return client
