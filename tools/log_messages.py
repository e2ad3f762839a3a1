"""Which log messages of which release the audit reads, by what was released: docs/reference/log-messages.md.

``python -m tools.log_messages`` takes the string constants of the classes that log about groups in jars of
kafka-clients and of the broker, the calls of loggers in kafka-python and aiokafka, and the texts in the
library that confluent-kafka ships; keeps those that speak of groups; and asks the tables of the audit
(``pipeline/audit/sources``) of each, filled in with what stands there in logs. Needs Maven and pip.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import re
import struct
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.artifacts import maven, packages, pypi
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.model.bugs.releases import ranges, released
from rebalance_verifier.pipeline.audit.sources.fields import FieldSource
from rebalance_verifier.pipeline.audit.sources.loggers import (
    BROKER,
    JAVA,
    KAFKA_GO,
    KAFKAJS,
    KGO,
    LIBRDKAFKA,
    LOGGED,
    PYTHON,
    SARAMA,
)
from rebalance_verifier.pipeline.audit.sources.patterns import SHORTEST, KnownLine, Source, UnrecognisedTail

from tools.arguments import writable

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "log-messages.md"

HOLE = re.compile(r"\{\}|\x01|%(?:\.\*|-?[\d.]*)?(?:l{0,2}|z|h)[sdiruxf]|%\(\w+\)s|%[+#]?[vq]")
"""What stands in a format for something else: of SLF4J, of Java's concatenation, of C, Python and Go."""

SAMPLES = (
    *(
        "7",
        "0",
        "m-1",
        "t-0",
        "t-0, t-1",
        "[t-0]",
        "[1 2]",
        "map[{topic:t partition:0}:5]",
        "[]byte(nil)",
        "{m=Assignment(partitions=[t-0, u-1])}",
        "",
        "and member id ",
    ),
    "Generation{generationId=7, memberId='m', protocol='range'}",
    # Rows with these words come before one that takes any others.
    "cached metadata has changed from (version7: {t=1}) to (version8: {t=2})",
    *("[TopicPartition(topic='t', partition=0)]", "<Generation 7 (member_id: m, protocol: range)>"),
    *("Broker: Unknown member", "b:9092 (id: 7 rack: null)"),
)
MAX_HOLES = 3
"""Of a format with more, each has the same sample; or else a row that begins as it does is taken to read it:
what stands in it is too much to try."""

LEAD = re.compile(r'(?:[^\s"]+: )?(?:Group "[^"]*":? )?')
"""What librdkafka writes before a message, which the tables take for its prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """Whose messages: ``texts`` of one release, from its package called ``package``."""

    name: str
    source: Source | FieldSource
    package: str
    releases: tuple[str, ...]
    texts: Callable[[Logging, str], Iterable[str]]
    versions: Callable[[str], Sequence[str]]
    where: tuple[str, ...]
    """Classes, or files of the package."""
    about: re.Pattern[str]
    """What is about a group."""
    pieces: bool = False
    """Texts are pieces of messages, as Scala's interpolation leaves them: a row that has one reads it."""
    known: tuple[str, ...] = ()
    """Of these what is looked at, and left alone on purpose; patterns."""

    def speaking(self, release: str) -> list[str]:
        """The messages of a release that are about groups."""
        return sorted({text for text in self.texts(self, release) if self.about.search(text)})

    def newest(self) -> str:
        """The newest release that there is."""
        return released(self.versions(self.package))[-1]


# -- what packages hold --------------------------------------------------------------------------------


def of_jar(logging: Logging, release: str) -> Iterator[str]:
    """The string constants of the classes in a jar from Maven."""
    artifact = logging.package.rpartition(":")[2]
    jars = maven.classpath([f"{logging.package}:{release}"])
    jar = next(one for one in jars if Path(one).name.startswith(f"{artifact}-{release}"))
    for found in classes(Path(jar), logging.where).values():
        yield from found


def classes(jar: Path, names: Sequence[str]) -> dict[str, set[str]]:
    """Class -> its string constants, with those of what is nested in it."""
    found: dict[str, set[str]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            outer = name.rsplit("/", 1)[-1].removesuffix(".class").split("$")[0]
            if name.endswith(".class") and outer in names:
                found.setdefault(outer, set()).update(_constants(archive.read(name)))
    return found


def _constants(data: bytes) -> Iterator[str]:
    """The string constants of a class file: JVM specification, 4.4."""
    (count,) = struct.unpack_from(">H", data, 8)
    at, index = 10, 1
    strings: dict[int, str] = {}
    constants: list[int] = []
    while index < count:
        tag = data[at]
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, at + 1)
            strings[index] = data[at + 3 : at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            if tag == 8:
                constants.append(struct.unpack_from(">H", data, at + 1)[0])
            at += {7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3, 5: 9, 6: 9}.get(tag, 5)
            index += tag in (5, 6)
        index += 1
    return (strings[one] for one in constants)


def of_python(logging: Logging, release: str) -> Iterator[str]:
    """The first argument of each call of a logger."""
    site = pypi.installed(logging.package, release)
    for pattern in logging.where:
        for file in sorted(site.glob(pattern)):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Attribute(attr="debug" | "info" | "warning" | "error" | "exception"),
                        args=[ast.Constant(value=str(text)), *_],
                    ):
                        yield text


def of_library(logging: Logging, release: str) -> Iterator[str]:
    """The texts in a shared library."""
    site = pypi.installed(logging.package, release)
    for pattern in logging.where:
        for file in sorted(site.glob(pattern)):
            for found in re.finditer(rb"[\x20-\x7e\n]{8,}", file.read_bytes()):
                yield found[0].decode("ascii")


_GO = re.compile(r'(?:Log\(LogLevel\w+, |Printf\(\s*)"((?:[^"\\]|\\.)*)"')
_JAVASCRIPT = re.compile(r"logger\.(?:info|warn|error|debug)\(\s*(['\"`])(.*?)\1", re.DOTALL)


def of_go(logging: Logging, release: str) -> Iterator[str]:
    """The messages in the sources of a Go module: formats, and those that stand beside fields."""
    module = packages.go_module(logging.package, release)
    for pattern in logging.where:
        for file in sorted(module.glob(pattern)):
            for text in _GO.findall(file.read_text(encoding="utf-8")):
                yield text.replace("\\n", "").strip()


def of_npm(logging: Logging, release: str) -> Iterator[str]:
    """The messages in the sources of a package from npm."""
    package = packages.npm_package(logging.package, release)
    for pattern in logging.where:
        for file in sorted(package.glob(pattern)):
            for _, text in _JAVASCRIPT.findall(file.read_text(encoding="utf-8")):
                yield text


# -- what the audit reads of them ----------------------------------------------------------------------


def filled(text: str) -> Iterator[str]:
    """A format with what may stand in it in a log."""
    first, *others = HOLE.split(text)
    for fill in itertools.product(SAMPLES, repeat=len(others)) if len(others) <= MAX_HOLES else ():
        yield first + "".join(value + other for value, other in zip(fill, others, strict=True))


@cache
def readings(name: str, text: str) -> tuple[KnownLine, ...]:
    """The rows of a source's table by which a format is an event."""
    source = next(one for one in LOGGED if one.name == name)
    if isinstance(source, FieldSource):
        return tuple(one for one in source.lines if one.start == text and one.kind is not None)
    found: dict[str, KnownLine] = {}
    if len(HOLE.findall(text)) > MAX_HOLES and source in (SARAMA, KAFKA_GO):  # of which many begin alike
        plain = HOLE.sub(lambda hole: "7" if hole[0].endswith("d") else "t", text)
        try:
            line = source.match(plain)[0]
        except UnrecognisedTail:
            return ()
        return (line,) if line is not None and line.kind is not None else ()
    many = len(HOLE.findall(text)) > MAX_HOLES
    for message in (HOLE.sub(lambda _, one=one: one, text) for one in SAMPLES) if many else filled(text):  # type: ignore[misc]
        for one in {message, LEAD.sub("", message, count=1)}:
            try:
                line, _ = source.match(one.replace("%%", "%"))
            except UnrecognisedTail:
                continue
            # What ends in the middle of a message is read of one that a layout goes on after.
            whole = line is not None and (not line.rest or any(map(line.regex.fullmatch, (one, f"{one} "))))
            if line is not None and line.kind is not None and whole:
                found[line.start + line.rest] = line
    if many and not found:
        bare = LEAD.sub("", HOLE.sub("x", text), count=1)
        events = (one for one in source.lines if one.kind is not None and len(one.start) >= SHORTEST)
        return tuple(one for one in events if bare.startswith(one.start))[:1]
    return tuple(found.values())


def state(logging: Logging, text: str) -> str:
    """The event that a message is, "" for what is left alone on purpose, UNREAD for the rest."""
    found = readings(logging.source.name, text)
    if not found and logging.pieces:
        rows = (one for one in logging.source.lines if one.kind is not None)
        found = tuple(one for one in rows if text.strip() in one.start + one.rest.replace("\\", ""))
    if found:
        return ", ".join(sorted({str(line.kind) for line in found}))
    return "" if any(re.match(one, text) for one in logging.known) else UNREAD


UNREAD = "not read"


# -- the page ------------------------------------------------------------------------------------------

HEAD = """# Log messages by release

Made by `python -m tools.log_messages` from the released jars and packages. For each client and the broker,
the tables list the messages about groups, the releases that have them, and what [the audit](log-formats.md)
makes of them. A release counts only if it was looked at. *Not read*: nobody has decided yet whether the
message says something. Messages that are ignored on purpose are counted, not listed. A nightly test names
the messages of a new release that are neither read nor on this page.
"""


def page() -> str:
    """The whole of it."""
    parts = [HEAD]
    for logging in LOGGINGS:
        parts += _section(logging, {one: logging.speaking(one) for one in logging.releases})
    return "\n".join(parts) + "\n"


def _section(logging: Logging, texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    every = sorted({text for some in texts.values() for text in some})
    states = {text: state(logging, text) for text in every}
    counts = [[*states.values()].count(kind) for kind in ("", UNREAD)]
    yield f"## {logging.name}\n"
    yield (
        f"`{logging.package}` {', '.join(logging.releases)}: {len(every)} messages about groups, "
        f"{len(every) - sum(counts)} read, {counts[0]} ignored, {counts[1]} not read.\n"
    )
    yield "| message | event | releases |"
    yield "|---|---|---|"
    for text in sorted(every, key=lambda text: (states[text] == UNREAD, text)):
        if states[text]:
            has = [text in texts[one] for one in logging.releases]
            where = "all" if all(has) else ranges(logging.releases, has)
            yield f"| `{written(text)}` | {states[text]} | {where} |"
    yield ""


def written(text: str) -> str:
    """A message as it stands on the page."""
    bare = HOLE.sub("{}", text).replace("\n", " ").strip()
    return bare.replace("`", "'").replace("|", "\\|")


def listed(text: str) -> set[str]:
    """The messages that a page has, as ``written``."""
    return set(re.findall(r"^\| `(.*)` \| [^|]* \| [^|]* \|$", text, re.MULTILINE))


def _logging(row: Mapping[str, str | list[str]], **more: object) -> Logging:
    return Logging(
        name=str(row["name"]),
        package=str(row["package"]),
        releases=tuple(row["releases"]),
        where=tuple(row["where"]),
        about=re.compile(str(row["about"])),
        known=tuple(row.get("known", ())),
        **more,  # type: ignore[arg-type]
    )


def _of(registry: str) -> Callable[[str], Sequence[str]]:
    """Return what lists the releases of a package of a registry."""

    def versions(package: str) -> Sequence[str]:
        found = existing(f"{registry}:{package}")
        if found.trouble:
            raise ToolError(found.trouble)
        return found.releases

    return versions


_KINDS: dict[str, dict[str, object]] = {
    "java": {"source": JAVA, "texts": of_jar, "versions": maven.versions},
    "broker": {"source": BROKER, "texts": of_jar, "versions": maven.versions},
    "old-broker": {"source": BROKER, "texts": of_jar, "versions": maven.versions, "pieces": True},
    "librdkafka": {"source": LIBRDKAFKA, "texts": of_library, "versions": pypi.versions},
    "kafka-python": {"source": PYTHON, "texts": of_python, "versions": pypi.versions},
    "aiokafka": {"source": PYTHON, "texts": of_python, "versions": pypi.versions},
    "franz-go": {"source": KGO, "texts": of_go, "versions": _of("go")},
    "sarama": {"source": SARAMA, "texts": of_go, "versions": _of("go")},
    "kafka-go": {"source": KAFKA_GO, "texts": of_go, "versions": _of("go")},
    "kafkajs": {"source": KAFKAJS, "texts": of_npm, "versions": _of("npm")},
}
LOGGINGS = tuple(
    _logging(row, **_KINDS[key])
    for key, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
)
"""Those of the page, in order."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=writable, default=PAGE)
    options = parser.parse_args()
    try:
        text = page()
    except ToolError as error:
        parser.error(str(error))
    options.page.write_text(text, encoding="utf-8")
    print(options.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
