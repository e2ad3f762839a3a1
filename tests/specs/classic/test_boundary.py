"""The gate's clauses in logic: the formulas say what the oracles say, and the contract follows from them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.generator import BY_NAME, generate
from rebalance_verifier.gate.scenarios.player import PlayedHistory, play
from rebalance_verifier.gate.scenarios.probes import probes
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import Answer, Ask, AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.clause import Clause, History, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE, select
from rebalance_verifier.properties.assignors.played import calls_of
from rebalance_verifier.properties.assignors.scenarios import Scenario
from rebalance_verifier.properties.assignors.settling import hides
from rebalance_verifier.specs.classic import contract, gate
from rebalance_verifier.specs.classic.boundary import GIVEN
from rebalance_verifier.specs.classic.boundary import contract as theorem_of
from rebalance_verifier.specs.classic.gate import COUNTERPARTS, FORMULAS, JudgedCall
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.language import Vocabulary
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge
from rebalance_verifier.specs.logic.specification import Theorem
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
CONVERGE = "kip429/converge"
OF_CALLS = tuple(name for name in FORMULAS if name != CONVERGE)


# -- the table -----------------------------------------------------------------------------------------


def test_every_clause_of_the_contract_has_its_counterparts():
    assert COUNTERPARTS.keys() == {**contract.SAFETY, **contract.LIVENESS}.keys()
    assert {name for names in COUNTERPARTS.values() for name in names} == FORMULAS.keys()
    assert [name for name, names in COUNTERPARTS.items() if not names] == ["held_back"]


def test_formulas_are_called_as_the_gate_calls_its_clauses():
    for name in OF_CALLS:
        assert CLAUSES[name].scope is Scope.CALL
        assert FORMULAS[name].__name__ == CLAUSES[name].check.__name__
    assert [clause.scope for clause in select([CONVERGE])] == [Scope.HISTORY] * 3


def test_a_conformant_assignor_is_asked_for_all_that_safety_rests_upon():
    """No counterpart of a clause of safety is one that a check may be content without."""
    needed = {name for clause in contract.SAFETY for name in COUNTERPARTS[clause]}
    assert {CLAUSES[name].level for name in needed} == {Level.SAFETY}
    assert not any(CLAUSES[name].promises for name in needed)


# -- a judged call as a structure ----------------------------------------------------------------------

CALL = Vocabulary()
Member, _, _ = CALL.sort("Member", "MN")
Partition, _ = CALL.sort("Partition", "P")
Generation, _ = CALL.sort("Generation", "G")
CALL.fixed("lt", Generation, Generation)
CALL.fixed("none", value=Generation)
for relation in ("member", "exists", "incremental", "again"):
    sorts = {"member": (Member,), "exists": (Partition,)}
    CALL.relation(relation, *sorts.get(relation, ()))
for relation in ("subscribed", "offered", "repeated"):
    CALL.relation(relation, Member, Partition)
CALL.function("claim", Member, Partition, value=Generation)
STATE = CALL.state()
JUDGED = {
    name: formula(
        JudgedCall(
            member=STATE.member,
            subscribed=STATE.subscribed,
            claim=STATE.claim,
            exists=STATE.exists,
            offered=STATE.offered,
            repeated=STATE.repeated,
            incremental=STATE.incremental,
            again=STATE.again,
        )
    )
    for name, formula in FORMULAS.items()
}


@cache
def stepper(members: int, partitions: int, generations: int) -> Stepper:
    sizes = {"Member": members, "Partition": partitions, "Generation": generations}
    return Stepper(Universe(CALL, sizes, {"lt": lambda g, h: g < h, "none": 0}), ())


def up(number: int, step: int) -> int:
    return max(1, -(-number // step)) * step


def pictured(call: AssignorCall, *, again: bool = False) -> tuple[Stepper, Structure]:
    """The call as a finite structure.

    It has a few elements more than it needs, of which nothing holds, so that many calls share a universe.
    """
    members = list(dict.fromkeys([*call.group, *call.assignment]))
    claimed = [p for claim in call.claims.values() for p in claim.partitions]
    given = [p for partitions in call.assignment.values() for p in partitions]
    parts = sorted({*call.existing, *claimed, *given})
    since = sorted({claim.generation for claim in call.claims.values()})
    values: dict[str, dict[tuple[Value, ...], Value]] = {
        "member": {(m,): name in call.group for m, name in enumerate(members)},
        "exists": {(p,): part in call.existing for p, part in enumerate(parts)},
        "incremental": {(): call.protocol is COOPERATIVE},
        "again": {(): again},
        **{name: {} for name in ("subscribed", "offered", "repeated", "claim")},
    }
    for m, name in enumerate(members):
        topics = call.group[name].topics if name in call.group else ()
        owned = call.claims[name].partitions if name in call.claims else ()
        for p, part in enumerate(parts):
            values["subscribed"][m, p] = part.topic in topics
            values["offered"][m, p] = part in call.assignment.get(name, ())
            values["repeated"][m, p] = call.assignment.get(name, ()).count(part) > 1
            if part in owned:
                values["claim"][m, p] = since.index(call.claims[name].generation) + 1
    here = stepper(up(len(members), 4), up(len(parts), 8), up(len(since) + 1, 4))
    places = here.universe.places
    return here, tuple(
        tuple(values[name].get(arguments, 0 if name == "claim" else False) for arguments in places[name])
        for name in here.universe.positions
    )


def kept(clause: Clause, call: AssignorCall) -> bool:
    """What the gate's own oracle says."""
    return not clause.applies(call.protocol, ()) or clause.check(call) is None


# -- one call ------------------------------------------------------------------------------------------

TOPICS = ("t", "u", "w")
PARTITIONS = [TopicPartition(*part) for part in (("t", 0), ("t", 1), ("t", 2), ("u", 0), ("w", 0))]
"""The leader knows two partitions of t, one of u, and nothing of w."""


def random_call(rnd: random.Random) -> AssignorCall:
    """Any group, with any claims, and an answer that is often nearly right."""
    members = ["A", "B", "C"][: rnd.randint(1, 3)]
    claims = {
        m: StatedClaim(tuple(p for p in PARTITIONS if rnd.random() < 0.4), rnd.randint(NO_GENERATION, 2))
        for m in members
    }
    group = {
        m: Subscription(
            topics=tuple(t for t in TOPICS if rnd.random() < 0.7),
            owned_partitions=claims[m].partitions,
            generation_id=claims[m].generation,
        )
        for m in members
    }
    answer: dict[str, list[TopicPartition]] = {m: [] for m in (*members, "Z")}
    for part in PARTITIONS:
        claimants = [m for m in members if part in claims[m].partitions]
        subscribers = [m for m in members if part.topic in group[m].topics]
        one = rnd.choice((claimants, claimants, subscribers, members, ["Z"], [], []))
        for member in rnd.sample(one, min(len(one), rnd.choice((1, 1, 1, 1, 2)))):
            answer[member] += [part] * rnd.choice((1,) * 9 + (2,))
    return AssignorCall(
        protocol=rnd.choice((COOPERATIVE, COOPERATIVE, EAGER)),
        cluster=Cluster.of({"t": 2, "u": 1}),
        group=group,
        claims=claims,
        assignment={m: tuple(parts) for m, parts in answer.items()},
    )


def disagreements(calls: Sequence[AssignorCall]) -> Iterator[tuple[str, AssignorCall]]:
    for call in calls:
        here, state = pictured(call)
        for name in OF_CALLS:
            if kept(CLAUSES[name], call) is not here.holds(JUDGED[name], state):
                yield name, call


def test_the_formulas_and_the_oracles_agree_on_any_call():
    rnd = random.Random("boundary")
    calls = [random_call(rnd) for _ in range(600)]
    assert not list(disagreements(calls))
    verdicts = Counter((name, kept(CLAUSES[name], call)) for call in calls for name in OF_CALLS)
    rare = {(name, verdict) for name in OF_CALLS for verdict in (True, False) if verdicts[name, verdict] < 30}
    assert not rare


def test_a_formula_that_says_something_else_is_noticed(monkeypatch):
    monkeypatch.setitem(JUDGED, "kip792/claim/1", JUDGED["kip429/leader/4"])
    rnd = random.Random("boundary")
    assert {name for name, _ in disagreements([random_call(rnd) for _ in range(100)])} == {"kip792/claim/1"}


# -- histories -----------------------------------------------------------------------------------------


def greedy(_: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
    """Deals everything out anew, whoever claims it."""
    answer: dict[str, list[TopicPartition]] = {member: [] for member in group}
    for number, part in enumerate(sorted(cluster.partitions())):
        if able := [member for member in group if part.topic in group[member].topics]:
            answer[able[(number + len(group)) % len(able)]].append(part)
    return Answer({member: tuple(parts) for member, parts in answer.items()})


def restless(seed: int) -> Ask:
    """Withholds what is claimed from time to time, and deals the rest out by chance."""
    rnd = random.Random(seed)

    def ask(_: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
        answer: GroupAssignment = reference("cooperative-sticky").assign(cluster, group)
        owned = {part for member in group for part in group[member].owned_partitions}
        return Answer(
            {m: tuple(p for p in ps if p not in owned or rnd.random() < 0.8) for m, ps in answer.items()}
        )

    return ask


def sound(_: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
    return Answer(reference("cooperative-sticky").assign(cluster, group))


def played(ask: Ask, scenario: Scenario) -> tuple[PlayedHistory, History | None]:
    """What playing it showed, and what the clauses of a history are shown of it."""
    shown: list[History] = []
    probe = replace(CLAUSES["kip429/converge/1"], id="probe", check=lambda history: shown.append(history))
    record = play(scenario, ask, None, (*TABLE, probe), ())
    return record, shown[0] if shown else None


def drawn(seed: int) -> Scenario:
    """A scenario along any dimensions."""
    draw = Seeded(seed)
    return generate(draw, COOPERATIVE, [name for name in BY_NAME if draw.integer(0, 2) == 0])


ASKED: dict[str, Callable[[int], Ask]] = {
    "sound": lambda seed: sound,
    "greedy": lambda seed: greedy,
    "restless": restless,
}


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", ASKED)
def test_the_formulas_and_the_oracles_agree_on_the_calls_of_histories(name):
    calls = [
        call for seed in range(120) for call in calls_of(played(ASKED[name](seed), drawn(seed))[0].calls)
    ]
    assert len(calls) > 300
    assert not list(disagreements(calls))


def nobody_revokes(second: AssignorCall) -> bool:
    """The formula of convergence, of the second call of a group that is left alone."""
    here, state = pictured(second, again=True)
    return here.holds(JUDGED[CONVERGE], state)


def second_round(history: History) -> AssignorCall | None:
    """The second call of a group that is left alone, unless EAGER members hide what they hold."""
    alone = history.calls[history.settling :]
    return alone[1] if len(alone) > 1 and not hides(alone) else None


def unsettled(record: PlayedHistory) -> set[str]:
    return {found.clause.id for found in record.found if found.clause.id.startswith(CONVERGE)}


@pytest.mark.slow
def test_a_second_round_that_revokes_is_what_the_clauses_of_convergence_forbid():
    seen: Counter[tuple[str, bool]] = Counter()
    for name, question in ASKED.items():
        for seed in range(200):
            record, history = played(question(seed), drawn(seed))
            call = second_round(history) if history else None
            if call is None:
                continue
            broken = unsettled(record)
            formula = nobody_revokes(call)
            if not formula:
                assert broken, seed
            if "kip429/converge/3" in broken:
                assert not formula, seed
            seen[name, formula] += 1
    assert min(seen["greedy", True], seen["sound", True], seen["restless", False]) > 20, seen


def test_what_released_assignors_do_with_unequal_subscriptions_is_not_in_the_contract():
    """They need a third round (KAFKA-8767): the gate's clauses of liveness hold, ``stays`` does not."""
    assignor = switched("cooperative-sticky", ["third_round_general"])
    probe = next(one for one in probes() if one.switch == "third_round_general")

    def ask(_: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
        return Answer(assignor.assign(cluster, group))

    record, history = played(ask, probe.scenario)
    assert unsettled(record) == {"kip429/converge/3"}
    assert history is not None
    first, second = history.calls[history.settling :][:2]
    assert not nobody_revokes(second)
    assert any(part in first.assignment[member] for member, parts in second.revoked.items() for part in parts)


# -- the proof -----------------------------------------------------------------------------------------


def theorem() -> Theorem:
    return theorem_of(specification(), specification(contract=gate.SAFETY))


def verdicts(clause: str, *, without: str) -> set[ProofVerdict]:
    """Of a clause of the contract when one thing that it follows from is not known."""
    case = next(case for case in theorem().cases if clause in case.goals and case.kind == "implies")
    known = {name: fact for name, fact in case.facts().items() if name != without}
    assert len(known) < len(case.facts())
    narrow = replace(case, facts=lambda: known, goals={clause: case.goals[clause]})
    return {answer.verdict for answer in discharge(theorem().vocabulary, narrow, limit=2_000_000)}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("clause", "counterpart"),
    [
        *((clause, counterpart) for clause, names in COUNTERPARTS.items() for counterpart in names),
        *((clause, fact) for clause, facts in GIVEN.items() for fact in facts),
    ],
)
def test_no_clause_of_the_contract_follows_from_less(clause, counterpart):
    assert verdicts(clause, without=counterpart) == {ProofVerdict.REFUTED}


@pytest.mark.slow
def test_an_older_claim_displaces_an_owner_where_the_gate_does_not_ask_for_the_newest(monkeypatch):
    less = {name: clause for name, clause in gate.SAFETY.items() if name != "kip792/claim/1"}
    monkeypatch.setattr(gate, "SAFETY", less)
    goal = "no older claim displaces an owner"
    case = next(case for case in theorem().cases if goal in case.goals)
    answers = {
        answer.goal: answer.verdict for answer in discharge(theorem().vocabulary, case, limit=2_000_000)
    }
    assert {name for name, verdict in answers.items() if verdict is not ProofVerdict.PROVED} == {goal}
