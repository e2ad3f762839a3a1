"""How the suite was installed, and the command that installs more of it from the same source.

Nobody has registered the distribution's name on a public index, so no command names it as something to fetch
there. Installers record a path, an address or a commit (PEP 610); where they record none, the packages that
are missing are named themselves.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME = "rebalance-verifier"

OF_EXTRAS = {
    **dict.fromkeys(("pyspark", "py4j", "pyarrow", "pandas"), "spark"),
    "duckdb": "audit",
    **dict.fromkeys(("kafka", "aiokafka", "confluent_kafka"), "targets"),
}
"""Packages that are not required -> the extra that brings them."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an installer took the suite from: a path of this machine, or what pip takes as an address."""

    path: Path | None = None
    address: str = ""
    editable: bool = False

    def requirement(self, extra: str = "") -> list[str]:
        """Return the arguments of `pip install` for this source; none where it is not known, or gone."""
        extras = f"[{extra}]" if extra else ""
        if self.path is not None:
            return [*["-e"] * self.editable, f"{self.path}{extras}"] if self.path.exists() else []
        return [f"{NAME}{extras} @ {self.address}"] if self.address else []


def installation() -> Installation:
    """Return what the installer of this Python recorded."""
    from importlib.metadata import distribution  # which takes longer to load than the command itself

    return parsed(distribution(NAME).read_text("direct_url.json") or "")


def parsed(record: str) -> Installation:
    """Return what a `direct_url.json` says; one that says nothing is that of an index.

    >>> parsed('{"url": "https://git.example.com/s.git", "vcs_info": {"vcs": "git", "commit_id": "4f2c"}}')
    Installation(path=None, address='git+https://git.example.com/s.git@4f2c', editable=False)
    """
    try:
        found: dict[str, Any] = json.loads(record)
        url = urlsplit(found["url"])
        below = f"#subdirectory={found['subdirectory']}" if found.get("subdirectory") else ""
        if "vcs_info" in found:
            vcs = found["vcs_info"]
            return Installation(address=f"{vcs['vcs']}+{found['url']}@{vcs['commit_id']}{below}")
        if url.scheme == "file":
            from urllib.request import url2pathname  # and with it ssl: in a function

            path = Path(url2pathname(url.path), found.get("subdirectory", ""))
            return Installation(path=path, editable=bool(found.get("dir_info", {}).get("editable")))
        hashes = found.get("archive_info", {}).get("hashes", {})
        pinned = f"#sha256={hashes['sha256']}" if "sha256" in hashes else ""
        return Installation(address=found["url"] + (below or pinned))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Installation()


def how_to_get(extra: str = "") -> str:
    """Return the command that installs what an extra brings, or without one what is required."""
    from importlib.metadata import distribution

    packages = requirements(distribution(NAME), extra)
    return command(installation().requirement(extra), packages, Path(sys.prefix))


def command(source: Sequence[str], packages: Sequence[str], prefix: Path) -> str:
    """Return the command for the environment at ``prefix``: the source where the suite came from, or else the
    packages; pipx and uv have environments of their own, to which packages are added."""
    if (prefix / "pipx_metadata.json").exists():
        return shlex.join(["pipx", "inject", NAME, *packages])
    if (prefix / "uv-receipt.toml").exists() and source:
        return shlex.join(["uv", "tool", "install", "--with", ",".join(packages), *source])
    pip = ["pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *(source or packages)])


def requirements(of: Distribution, extra: str = "") -> list[str]:
    """Return what the distribution requires for an extra, or without one what it requires always."""
    return list(_asked_for(of.requires or (), extra))


def _asked_for(lines: Iterable[str], extra: str) -> Iterable[str]:
    for line in lines:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        named = re.search(r"""extra == ["']([\w.-]+)["']""", marker)
        if (named[1] if named else "") == extra and not requirement.startswith(NAME):
            yield requirement
