"""The records in which what is known of a client is written down, and how they are read.

Texts and traits are in a TOML file beside each client's module, what has to run is in the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.group.observations import Noted
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Action, Fairness, Outcome

HEARD = Noted("JoinGroup response heard")
"""Seen in a step that shows ``joined`` and is none of the model's."""

NEXT = "next"
"""A component that some clients' members have beside the model's: a subscription that waits, as topics."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A step more that a client has than the model's member, which is Java's, so that the log goes on being
    judged after it.

    ``id`` is the name of that step in a run of the model; ``parts`` are the components of the member that it
    reads and writes, ``run`` says what they become. What is ``benign`` only comes in another order, or at
    another time; everything else is a finding about the client, which an answer that took it names. It was
    seen in recordings and confirmed in the client's own log or source; ``evidence`` says where.
    """

    id: str
    benign: bool
    sentence: str
    evidence: str
    parts: Sequence[str]
    run: Callable[..., Iterator[Outcome]]
    client: str = ""
    """Its name, "" for what all have."""
    timed: str = ""
    """What is done to the consumer (``pause``, ``stop``, ``kill``) when alone it happens; "": at any time."""
    after_subscribe: float = 0.0
    """Seconds after ``subscribe()`` in which alone it happens; 0: at any time."""
    silent: float = 0.0
    """Seconds after it in which the consumer tells nothing."""

    def step(self, me: MemberContext) -> Action:
        """Return the step of one member."""
        names = tuple(me.name(part) for part in self.parts)
        return Action(
            name=self.id,
            who=me.slot,
            reads=names,
            writes=names,
            run=partial(self.run, me),
            guard=None,
            fault=False,
            fairness=Fairness.NONE,
        )


@dataclass(frozen=True, kw_only=True)
class FindingContext:
    """A finding in its recording: the finding as ``report.json`` has it, the events and ``run.json``."""

    client: str
    """As in ``--clients``, without the version."""
    cluster: str
    finding: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    run: Mapping[str, Any]

    def before(self, consumer: str, *kinds: str) -> list[Mapping[str, Any]]:
        """Return events of a consumer up to the finding, the last ones last; of ``kinds``, if any are
        named."""
        began = self.finding["began"]
        return [
            event
            for event in self.events
            if event.get("consumer") == consumer
            and event["at"] <= began
            and (not kinds or event["event"] in kinds)
        ]

    @property
    def away(self) -> list[str]:
        """Consumers that were kept from polling, or stopped, when the group was to be at rest."""
        rest = next((r for r in self.run["rests"] if r["at"] == self.finding["began"]), None)
        done = self.run["steps"][: rest["number"]] if rest else []
        last = {step["member"]: step["do"] for step in done if step.get("member") and step["do"] in _LIFE}
        return sorted(name for name, do in last.items() if do in ("pause", "stop"))

    @property
    def in_group_without_polls(self) -> bool:
        """Check whether a consumer without polls is in the group: it synced last, or owns, and has not
        left."""
        return any(all(e["event"] != "leaving" for e in self.before(name)[-4:]) for name in self.away)


_LIFE = ("start", "close", "kill", "pause", "resume", "stop", "cont")


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A reviewed cause of findings of ``checks``: ``fits`` says whether it is that of one, ``evidence`` what
    shows it. ``on_mock``: on the mock cluster only, whose defect it is."""

    id: str
    sentence: str
    evidence: str
    checks: Sequence[str]
    fits: Callable[[FindingContext], bool]
    on_mock: bool = False

    @property
    def blame(self) -> Literal["client", "mock cluster"]:
        """Return whose defect it is."""
        return "mock cluster" if self.on_mock else "client"

    def explains(self, seen: FindingContext) -> bool:
        """Check whether it is the cause of a finding."""
        cluster = not self.on_mock or seen.cluster == "mock"
        return cluster and seen.finding["check"] in self.checks and self.fits(seen)


@dataclass(frozen=True, kw_only=True)
class ClientTraits:
    """Traits of one client, whatever its release; ``model/bugs/profiles.py`` has its releases.

    ``name`` begins the names of its release profiles, ``recorder`` is the client in ``--clients``,
    ``reports`` the first word of what a recorded consumer says that it is, ``profile`` the release that is
    meant by that. ``module`` is what a recorder in Python imports, ``distribution`` where that comes from.
    """

    name: str
    recorder: str = ""
    reports: str = ""
    profile: str = ""
    module: str = ""
    distribution: str = ""
    cooperative: bool = False
    """Whether it has a cooperative assignor."""
    speaks_consumer: bool = False
    """Whether it has ``group.protocol=consumer`` (KIP-848)."""
    stays_classic: str = ""
    """Why a broker does not convert a group of its cooperative assignor; "": it does."""
    refuses_mixed: str = ""
    """What it says to a list with a cooperative assignor beside an eager one, by which a group is upgraded
    member by member (KIP-429); "": it takes that."""
    logs_join_once: bool = False
    """It logs that it joins once for a JoinGroup that is sent several times."""
    calls_before_first_join: Sequence[str] = ()
    """Callbacks with no partitions that an EAGER member gets before its first join, where Java's does not."""
    loses: Sequence[str] = ()
    """Faults of the model that happen to it by itself: what it loses."""
    subscribes_again: bool = False
    """``subscribe()`` to the same topics is a step."""
    joins_unpolled: bool = False
    """It takes part in a rebalance while nobody polls: never too slow for its timeout."""
    lenient_leader: bool = False
    """Its leader is known to break the clauses of a leader."""
    closes_midway: bool = False
    """``close()`` during a rebalance, or of a join that was abandoned, is as one at rest."""
    deviations: Sequence[Deviation] = ()
    diagnoses: Sequence[Diagnosis] = ()
    """The first that explains a finding counts."""


Run = Callable[..., Iterator[Outcome]]
Fits = Callable[[FindingContext], bool]


def read_client(module: str, steps: Mapping[str, Run], tests: Mapping[str, Fits | Diagnosis]) -> ClientTraits:
    """Return what is known of the client of ``module``, a file; ``steps`` and ``tests`` as below."""
    traits = _rows(module)["traits"]
    return ClientTraits(
        **traits,
        deviations=read_deviations(module, steps, traits["name"]),
        diagnoses=read_diagnoses(module, tests),
    )


def read_deviations(module: str, steps: Mapping[str, Run], client: str = "") -> tuple[Deviation, ...]:
    """Return the deviations in the TOML file beside ``module``, in its order; ``steps`` by id."""
    rows = _rows(module)["deviation"]
    return tuple(Deviation(id=id_, run=steps[id_], client=client, **row) for id_, row in rows.items())


def read_diagnoses(module: str, tests: Mapping[str, Fits | Diagnosis]) -> tuple[Diagnosis, ...]:
    """Return the diagnoses in the TOML file beside ``module``, or of others, in the order of ``tests``, by
    id."""
    rows = _rows(module).get("diagnosis", {})
    return tuple(
        fits if isinstance(fits, Diagnosis) else Diagnosis(id=id_, fits=fits, **rows[id_])
        for id_, fits in tests.items()
    )


def _rows(module: str) -> dict[str, dict[str, Any]]:
    return table(module)
