"""The exported TLA+ text: as it should read, as TLC runs it, and as much of that as can be had without TLC.

TLC is a Java program and not ours to ship: ``tools.tlc`` finds it. Where it is missing, these tests are
skipped, and say so.
"""

import random
import re
from dataclasses import replace

import pytest
import z3
from rebalance_verifier.specs.classic import safety
from rebalance_verifier.specs.consumer import safety as consumer_safety
from rebalance_verifier.specs.logic.language import ANY, Vocabulary
from rebalance_verifier.specs.logic.universe import Universe

from tests.tiers import tiered
from tools import tlc
from tools.state_space import StateSpace, explore
from tools.tla import consumer as tla_consumer
from tools.tla import group as tla_group
from tools.tla.configurations import files as classic_files
from tools.tla.module import module
from tools.tla.names import RESERVED, Export, camel, ranges
from tools.tla.tlc import TlcModel, configuration, model

# -- a toy that has one of everything ------------------------------------------------------------------

V = Vocabulary()
Consumer, C, D = V.sort("Consumer", "CD")
Partition, P = V.sort("Partition", "P")
Generation, G, H = V.sort("Generation", "GH")
Stage, IDLE, BUSY = V.enumeration("Stage", ("idle", "busy"))
lt = V.fixed("lt", Generation, Generation)
none = V.fixed("none", value=Generation)
home = V.fixed("home", Partition, value=Consumer, meaning="where it belongs")
V.function("stage", Consumer, value=Stage, meaning="what it does")
V.relation("owned", Consumer, Partition, meaning="what it has")
V.function("since", Consumer, Partition, value=Generation)
V.function("current", value=Generation)
V.relation("LET", meaning="a word of TLA+")


def start(s, t, c):
    """It begins."""
    t.when(s.stage(c) == IDLE, z3.BoolVal(True))
    t.stage[c] = BUSY
    t.owned[c, P] = s.owned(c, P)  # which changes nothing


def take(s, t, c, p):
    """What nobody has."""
    t.when(z3.And(s.stage(c) == BUSY, z3.Not(z3.Exists([C], s.owned(C, p)))))
    t.owned[c, p] = True
    t.since[c, p] = s.current


def take_more(s, t, c, p):
    """What anybody has."""
    t.when(s.stage(c) == BUSY)
    t.owned[c, p] = True


def stop(s, t, c):
    """It gives everything back, and
    begins anew."""
    t.when(s.stage(c) != IDLE)
    t.stage[c] = IDLE
    t.owned[c, P] = False
    t.since[C, P] = z3.If(c == C, none, s.since(C, P))


def advance(s, t, g):
    """A later generation. Its name is taken."""
    t.when(lt(s.current, g))
    t.current = g
    t.LET = z3.Not(s.LET)


def shrink(s, t, c):
    """It keeps some; for all others the ages of what is not owned are forgotten too."""
    t.owned[c, P] = ANY
    t.where(z3.Implies(t.owned(c, P), s.owned(c, P)))
    t.since[C, P] = z3.If(s.owned(C, P), s.since(C, P), none)


def shuffle(s, t):
    """Everything is where it belongs or nowhere."""
    t.owned[C, P] = ANY
    t.where(z3.Implies(t.owned(C, P), home(P) == C))


ACTIONS = [
    *[V.action(effect) for effect in (start, take, stop)],
    V.action(advance, name="next"),
    V.action(shrink),
    V.action(shuffle, fault=True),
]
STATE = V.state()


def toy(**changes):
    initial = z3.And(
        z3.ForAll([C, P], STATE.owned(C, P) == z3.BoolVal(False)),
        z3.ForAll([C, P], STATE.since(C, P) == none),
        STATE.current == none,
        STATE.LET == z3.BoolVal(False),  # noqa: SIM300
        z3.Exists([C], STATE.stage(C) == IDLE),
    )
    invariants = {
        "one owner": z3.Implies(z3.And(STATE.owned(C, P), STATE.owned(D, P)), C == D),
        "not ahead": z3.Not(lt(STATE.current, STATE.since(C, P))),
    }
    export = Export(
        name="Toy", vocabulary=V, actions=ACTIONS, initial=initial, invariants=invariants,
        axioms={"irreflexive": z3.Not(lt(G, G))},
        naturals={"Generation": "MaxGeneration"},
        rendered={"lt": "{0} < {1}", "none": "0"},
        groups={"ownership": ["owned", "since"]},
        text="A toy.",
    )  # fmt: skip
    return replace(export, **changes)


SIZES = {"Consumer": 2, "Partition": 2, "Generation": 2}
MODEL_OF_TOY = TlcModel(
    name="MCToy",
    extends="Toy",
    text="Sizes to search.",
    definitions={
        "home": (
            "No two at home in one place.",
            "CHOOSE f \\in [Partition -> Consumer] : \\A p, q \\in Partition : f[p] = f[q] => p = q",
        )
    },
    initial={"InitBusy": ("Somebody is busy already.", STATE.stage(C) == BUSY)},
    next={"NextShuffle": ("With its only fault.", ["shuffle"])},
    instead={"Take_more": ("Also what somebody has.", V.action(take_more, name="take"))},
)


TEXT = r"""
\* A toy.

EXTENDS Naturals

CONSTANTS
  Consumer,
  Partition,
  MaxGeneration,  \* Nat: the greatest Generation
  home  \* [Partition -> Consumer]: where it belongs

Stage == {"idle", "busy"}

Generation == 0..MaxGeneration

ASSUME MaxGeneration \in Nat
ASSUME home \in [Partition -> Consumer]

ASSUME Irreflexive ==
  \A G \in Generation : ~(G < G)

VARIABLES
  stage,  \* [Consumer -> Stage]: what it does
  owned,  \* [Consumer \X Partition -> BOOLEAN]: what it has
  since,  \* [Consumer \X Partition -> Generation]
  current,  \* Generation
  LET_  \* BOOLEAN: a word of TLA+

ownership == << owned, since >>

vars == << stage, owned, since, current, LET_ >>

TypeOK ==
  /\ stage \in [Consumer -> Stage]
  /\ owned \in [Consumer \X Partition -> BOOLEAN]
  /\ since \in [Consumer \X Partition -> Generation]
  /\ current \in Generation
  /\ LET_ \in BOOLEAN

Init ==
  /\ owned = [C \in Consumer, P \in Partition |-> FALSE]
  /\ since = [C \in Consumer, P \in Partition |-> 0]
  /\ current = 0
  /\ LET_ = FALSE
  /\ stage \in [Consumer -> Stage]
  /\ \E C \in Consumer : stage[C] = "idle"

\* It begins.
Start(c) ==
  /\ stage[c] = "idle"
  /\ stage' = [stage EXCEPT ![c] = "busy"]
  /\ UNCHANGED << ownership, current, LET_ >>

\* What nobody has.
Take(c, p) ==
  /\ stage[c] = "busy"
  /\ ~(\E C \in Consumer : owned[C, p])
  /\ owned' = [owned EXCEPT ![c, p] = TRUE]
  /\ since' = [since EXCEPT ![c, p] = current]
  /\ UNCHANGED << stage, current, LET_ >>

\* It gives everything back, and
\* begins anew.
Stop(c) ==
  /\ stage[c] # "idle"
  /\ stage' = [stage EXCEPT ![c] = "idle"]
  /\ owned' = [C \in Consumer, P \in Partition |-> IF C = c THEN FALSE ELSE owned[C, P]]
  /\ since' = [C \in Consumer, P \in Partition |-> IF c = C THEN 0 ELSE since[C, P]]
  /\ UNCHANGED << current, LET_ >>

\* A later generation. Its name is taken.
Next_(g) ==
  /\ current < g
  /\ current' = g
  /\ LET_' = (~LET_)
  /\ UNCHANGED << ownership, stage >>

\* It keeps some; for all others the ages of what is not owned are forgotten too.
Shrink(c) ==
  /\ since' = [C \in Consumer, P \in Partition |-> IF owned[C, P] THEN since[C, P] ELSE 0]
  /\ \E new \in [Partition -> BOOLEAN] :
       owned' = [C \in Consumer, P \in Partition |-> IF C = c THEN new[P] ELSE owned[C, P]]
  /\ \A P \in Partition : owned'[c, P] => owned[c, P]
  /\ UNCHANGED << stage, current, LET_ >>

\* Everything is where it belongs or nowhere.
\* (A fault.)
Shuffle ==
  /\ owned' \in [Consumer \X Partition -> BOOLEAN]
  /\ \A C \in Consumer, P \in Partition : owned'[C, P] => home[P] = C
  /\ UNCHANGED << stage, since, current, LET_ >>

Step ==
  \/ \E c \in Consumer : Start(c)
  \/ \E c \in Consumer, p \in Partition : Take(c, p)
  \/ \E c \in Consumer : Stop(c)
  \/ \E g \in Generation : Next_(g)
  \/ \E c \in Consumer : Shrink(c)

Fault ==
  \/ Shuffle

Next ==
  \/ Step
  \/ Fault

Spec == Init /\ [][Next]_vars

\* Faults need not happen.
Fairness ==
  /\ \A c \in Consumer : WF_vars(Start(c))
  /\ \A c \in Consumer, p \in Partition : WF_vars(Take(c, p))
  /\ \A c \in Consumer : WF_vars(Stop(c))
  /\ \A g \in Generation : WF_vars(Next_(g))
  /\ \A c \in Consumer : WF_vars(Shrink(c))

FairSpec == Spec /\ Fairness

OneOwner ==
  \A C, D \in Consumer, P \in Partition : owned[C, P] /\ owned[D, P] => C = D

NotAhead ==
  \A C \in Consumer, P \in Partition : ~(current < since[C, P])
"""

MODEL = r"""
\* Sizes to search.

EXTENDS Toy

\* No two at home in one place.
MChome == CHOOSE f \in [Partition -> Consumer] : \A p, q \in Partition : f[p] = f[q] => p = q

\* Somebody is busy already.
InitBusy ==
  /\ Init
  /\ \A C \in Consumer : stage[C] = "busy"

\* With its only fault.
NextShuffle ==
  \/ Step
  \/ Shuffle

\* Also what somebody has.
\* What anybody has.
Take_more(c, p) ==
  /\ stage[c] = "busy"
  /\ owned' = [owned EXCEPT ![c, p] = TRUE]
  /\ UNCHANGED << stage, since, current, LET_ >>
"""

CONFIGURATION = """
\\* A toy.
SPECIFICATION Spec
CONSTANTS
  Consumer = {c1, c2}
  Partition = {p1, p2}
  MaxGeneration = 2
  home <- MChome
  Take <- Take_more
INVARIANTS
  TypeOK
  OneOwner
  NotAhead
"""


def body(text):
    """A module without its first and last line."""
    head, *lines, foot = text.splitlines()
    assert re.fullmatch(r"-{4,} MODULE \w+ -{4,}", head)
    assert re.fullmatch("={4,}", foot)
    return "\n".join(lines) + "\n"


def test_module_reads_as_written_here():
    assert body(module(toy())).strip() == TEXT.strip()


def test_model_and_configuration():
    assert body(model(toy(), MODEL_OF_TOY)).strip() == MODEL.strip()
    made = configuration(toy(), SIZES, text="A toy.", instead={"Take": "Take_more"})
    assert made.strip() == CONFIGURATION.strip()
    chosen = configuration(toy(), SIZES, invariants=["not ahead"], behaviour=["INIT I", "NEXT N"])
    assert "OneOwner" not in chosen
    assert chosen.startswith("INIT I\nNEXT N\nCONSTANTS\n")


def test_what_has_no_counterpart_is_refused():
    def free_letter(s, t):
        t.when(s.owned(C, P))

    def out_of_range(s, t, c):
        t.stage[c] = z3.If(s.owned(C, P), BUSY, IDLE)

    def diagonal(s, t):
        t.both[C, C] = True

    with pytest.raises(ValueError, match="C is no symbol"):
        module(toy(actions=[V.action(free_letter)]))
    with pytest.raises(ValueError, match="does not range over"):
        module(toy(actions=[V.action(out_of_range)]))
    other = Vocabulary()
    other.letters["C"] = C
    other.sorts["Consumer"] = Consumer
    other.relation("both", Consumer, Consumer)
    with pytest.raises(ValueError, match="one letter twice"):
        module(
            Export(
                name="Other",
                vocabulary=other,
                actions=[other.action(diagonal)],
                initial=z3.BoolVal(True),
                invariants={},
            )
        )
    with pytest.raises(ValueError, match="no TLA"):
        module(toy(invariants={"sum": z3.IntVal(1) + 1 == 2}))
    with pytest.raises(ValueError, match="sizes: missing or unknown: Generation"):
        configuration(toy(), {"Consumer": 1, "Partition": 1})
    with pytest.raises(ValueError, match="definitions: missing or unknown: home"):
        configuration(toy(), SIZES, defined=[])
    with pytest.raises(ValueError, match="definitions: unknown: away"):
        model(toy(), replace(MODEL_OF_TOY, definitions={"away": ("", "TRUE")}))
    with pytest.raises(ValueError, match="faults: unknown: take"):
        model(toy(), replace(MODEL_OF_TOY, next={"Next2": ("", ["take"])}))


# -- formulas ------------------------------------------------------------------------------------------

BUSY_C, BUSY_D, FLAG = STATE.stage(C) == BUSY, STATE.stage(D) == BUSY, STATE.LET
LONG = [
    STATE.owned(C, P),
    STATE.since(C, P) == STATE.current,
    STATE.since(D, P) != none,
    home(P) == D,
    D == C,
]


def written(formula):
    """``formula`` as an invariant, without what closes it."""
    text = module(toy(invariants={"it": formula}))
    lines = text[text.index("\nIt ==\n") :].splitlines()[2:-2]
    return "\n".join(line.removeprefix("  ") for line in lines)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (z3.Or(FLAG, z3.And(FLAG, z3.Not(FLAG))), "\\/ LET_\n\\/ LET_ /\\ ~LET_"),
        (z3.Implies(z3.Or(FLAG, z3.And(FLAG, FLAG)), FLAG), "LET_ \\/ (LET_ /\\ LET_) => LET_"),
        (z3.Implies(z3.Implies(FLAG, FLAG), FLAG), "(LET_ => LET_) => LET_"),
        (z3.Implies(FLAG, z3.Implies(FLAG, FLAG)), "LET_ => (LET_ => LET_)"),
        (z3.Not(z3.Implies(FLAG, FLAG)), "~(LET_ => LET_)"),
        (z3.Not(z3.Not(FLAG)), "LET_"),
        (z3.Not(STATE.current != none), "current = 0"),
        (z3.Not(lt(none, STATE.current)), "~(0 < current)"),
        (z3.And(FLAG, FLAG) == FLAG, "LET_ /\\ LET_ <=> LET_"),
        (z3.Xor(FLAG, FLAG), "~(LET_ <=> LET_)"),
        (FLAG == False, "~LET_"),  # noqa: E712
        (z3.And(FLAG, True, z3.Not(z3.BoolVal(False))), "LET_"),
        (z3.If(FLAG, none, STATE.current) == none, "(IF LET_ THEN 0 ELSE current) = 0"),
        (z3.If(FLAG, z3.If(FLAG, FLAG, FLAG), z3.Not(FLAG)), "IF LET_ THEN LET_ ELSE ~LET_"),
        (
            z3.Or(z3.Exists([G], z3.ForAll([G], lt(STATE.current, G))), FLAG),
            "\\/ \\E G \\in Generation : \\A H \\in Generation : current < H\n\\/ LET_",
        ),
        (z3.Implies(z3.Exists([G], lt(none, G)), FLAG), "(\\E G \\in Generation : 0 < G) => LET_"),
        (z3.Implies(FLAG, z3.Exists([G], lt(none, G))), "LET_ => \\E G \\in Generation : 0 < G"),
        (
            z3.Implies(z3.And(BUSY_C, BUSY_D, *LONG), z3.Or(C == D, FLAG)),
            """
\\A C, D \\in Consumer, P \\in Partition :
     /\\ stage[C] = "busy"
     /\\ stage[D] = "busy"
     /\\ owned[C, P]
     /\\ since[C, P] = current
     /\\ since[D, P] # 0
     /\\ home[P] = D
     /\\ D = C
  => C = D \\/ LET_
""",
        ),
        (
            z3.Implies(
                FLAG,
                z3.If(
                    z3.Or(BUSY_D, *LONG, BUSY_C), FLAG, z3.If(z3.And(*LONG, BUSY_C, BUSY_D), BUSY_D, BUSY_C)
                ),
            ),
            """
\\A C, D \\in Consumer, P \\in Partition :
  LET_ =>
    IF \\/ stage[D] = "busy"
       \\/ owned[C, P]
       \\/ since[C, P] = current
       \\/ since[D, P] # 0
       \\/ home[P] = D
       \\/ D = C
       \\/ stage[C] = "busy"
    THEN LET_
    ELSE IF /\\ owned[C, P]
            /\\ since[C, P] = current
            /\\ since[D, P] # 0
            /\\ home[P] = D
            /\\ D = C
            /\\ stage[C] = "busy"
            /\\ stage[D] = "busy"
         THEN stage[D] = "busy"
         ELSE stage[C] = "busy"
""",
        ),
    ],
)
def test_formulas_read_as_written_here(formula, text):
    assert written(formula) == text.strip("\n")


@pytest.mark.parametrize(
    ("names", "sorts", "text"),
    [
        ("C", (Consumer,), "C \\in Consumer"),
        ("CDP", (Consumer, Consumer, Partition), "C, D \\in Consumer, P \\in Partition"),
        ("CPD", (Consumer, Partition, Consumer), "C \\in Consumer, P \\in Partition, D \\in Consumer"),
        ("CPQ", (Consumer, Partition, Partition), "C \\in Consumer, P, Q \\in Partition"),
        ("", (), ""),
    ],
)
def test_variables_beside_each_other_share_their_set(names, sorts, text):
    """And the order stays: a function's arguments are in it."""
    assert ranges(names, sorts) == text


# -- what can be checked without TLC -------------------------------------------------------------------


def code(text):
    """The text without comments and strings."""
    return re.sub(r'"\w*"', '""', re.sub(r"\\\*.*", "", text))


def definitions(text):
    """Name and body of each definition, in order."""
    return re.findall(r"^(\w+)(?:\([\w, ]*\))? ==[ \n](.*?)(?=\n\n)", code(text), flags=re.M | re.S)


def undefined(text):
    """The names that are used and neither declared nor bound."""
    plain = code(re.sub(r"-+ MODULE \w+ -+|EXTENDS .*|WF_vars|\]_vars", "", text))
    known = set(RESERVED)
    for block in re.findall(r"^(?:CONSTANTS|VARIABLES)\n((?:  .*\n)*)", plain, flags=re.M):
        known |= set(re.findall(r"\w+", block))
    for name, parameters in re.findall(r"^(?:ASSUME )?(\w+)(?:\(([\w, ]*)\))? ==", plain, flags=re.M):
        known |= {name, *re.findall(r"\w+", parameters)}
    for quantified, ranged in re.findall(r"\\[AE] ([^:]*) :|\[([^\[\]]*) \|->", plain):
        known |= set(re.findall(r"\w+(?=,| \\in)", quantified or ranged))
    return sorted(set(re.findall(r"(?<![\\\w])[A-Za-z_]\w*", plain)) - known)


def faults(export):
    """What is wrong with the module of ``export``, as far as plain text tells."""
    text = module(export)
    variables = re.findall(r"\w+", dict(definitions(text))["vars"])
    groups = {name: re.findall(r"\w+", dict(definitions(text))[name]) for name in export.groups}
    bodies = dict(definitions(text))
    every = "\n".join(bodies.get(part, "") for part in re.findall(r"\w+", bodies["Next"]))
    called = re.findall(r": (\w+)\(|^  \\/ (\w+)$", every, flags=re.M)
    called = [with_ or without for with_, without in called]
    if len(called) != len(export.actions):
        yield f"Next calls {called}"
    for name in called:
        assigned = re.findall(r"(\w+)' (?:=|\\in)\s", bodies[name])
        unchanged = re.findall(r"UNCHANGED << (.*?) >>", bodies[name], flags=re.S)
        kept = [name_ for part in unchanged for name_ in re.findall(r"\w+", part)]
        kept = [symbol for item in kept for symbol in groups.get(item, [item])]
        if sorted([*assigned, *kept]) != sorted(variables):
            yield f"{name} assigns {assigned} and keeps {kept}"
    yield from (f"{name} is undefined" for name in undefined(text))
    yield from (f"too long: {line}" for line in text.splitlines() if len(line) > 110)


def test_every_action_settles_every_variable_and_every_name_is_declared():
    assert list(faults(toy())) == []


@pytest.mark.nightly
def test_the_protocol_is_written_out_whole():
    specification = safety.specification()
    export = tla_group.export(specification)
    assert list(faults(export)) == []
    written = dict(definitions(module(export)))
    for name in (*specification.properties, *specification.invariants):
        assert camel(name) in written


# -- TLC -----------------------------------------------------------------------------------------------


needs_tlc = pytest.mark.skipif(tlc.jar() is None, reason=tlc.MISSING)


def run(folder, export, sizes, wanted, main="tlc2.TLC", **options):
    """What TLC, or the parser alone, says about ``export``."""
    (folder / f"{export.name}.tla").write_text(module(export))
    (folder / f"{wanted.name}.tla").write_text(model(export, wanted))
    text = configuration(export, sizes, defined=wanted.definitions, **options)
    (folder / f"{wanted.name}.cfg").write_text(text)
    return tlc.run(folder, f"{wanted.name}.tla", main=main)


def counted(output):
    """Distinct states and depth of a search that ended without an error."""
    found = tlc.figures(output)
    assert not found.broken, output
    return found.distinct, found.depth


def searched(export, sizes, **fixed):
    """The same from our own search of the formulas, to which TLA+ is unknown."""
    sizes = {sort: size + (sort in export.naturals) for sort, size in sizes.items()}
    universe = Universe(export.vocabulary, sizes, fixed)
    stepper = StateSpace(universe, export.actions)
    counts = explore(stepper, stepper.states(export.initial), export.invariants)
    assert counts.end == "complete"
    return counts.distinct, counts.depth


ORDER = {"lt": lambda g, h: g < h, "none": 0}


@pytest.mark.slow
@needs_tlc
def test_tlc_counts_the_same_states_of_the_toy(tmp_path):
    found = searched(toy(), SIZES, home=lambda p: p, **ORDER)
    assert counted(run(tmp_path, toy(), SIZES, MODEL_OF_TOY)) == found


@pytest.mark.slow
@needs_tlc
def test_tlc_finds_what_does_not_hold(tmp_path):
    wrong = toy(invariants={"at home": z3.Implies(STATE.owned(C, P), home(P) == C)})
    assert "Invariant AtHome is violated" in run(tmp_path, wrong, SIZES, MODEL_OF_TOY)


@pytest.mark.nightly
@needs_tlc
def test_tlc_checks_the_axioms(tmp_path):
    output = run(tmp_path, toy(axioms={"wrong": lt(none, G)}), SIZES, MODEL_OF_TOY)
    assert re.search(r"Assumption line \d+.* is false", output)


@pytest.mark.nightly
@needs_tlc
def test_fair_behaviours_are_understood(tmp_path):
    export = toy(actions=ACTIONS[:1], invariants={})
    wanted = replace(MODEL_OF_TOY, next={}, instead={})
    found = counted(run(tmp_path, export, SIZES, wanted, behaviour=["SPECIFICATION FairSpec"]))
    assert found[0] == 4


# Formulas at random, true in one small structure; TLC has to find them true. A wrong parenthesis or a wrong
# indentation would change what some of them mean.

Digit, *DIGITS = (logic := Vocabulary()).enumeration("Digit", ("one", "two", "three"))
small = logic.fixed("small", Digit)
less = logic.fixed("less", Digit, Digit)
follower = logic.fixed("follower", Digit, value=Digit)
yes = logic.fixed("yes")
logic.function("x", value=Digit)
ONE, TWO, THREE = DIGITS
STRUCTURE = [
    small(ONE), z3.Not(small(TWO)), z3.Not(small(THREE)), yes,
    follower(ONE) == TWO, follower(TWO) == THREE, follower(THREE) == THREE,
    *[less(a, b) == (i < j) for i, a in enumerate(DIGITS) for j, b in enumerate(DIGITS)],
]  # fmt: skip
STRUCTURE_TEXT = {
    "small": '[d \\in Digit |-> d = "one"]',
    "less": '[d, e \\in Digit |-> <<d, e>> \\in {<<"one", "two">>, <<"one", "three">>, <<"two", "three">>}]',
    "follower": '[d \\in Digit |-> IF d = "one" THEN "two" ELSE "three"]',
    "yes": "TRUE",
}


def formula(draw, depth, scope):
    """A formula with the variables of ``scope``."""

    def term():
        chosen = draw.choice([*DIGITS, *scope, *scope])
        return follower(chosen) if draw.random() < 0.2 else chosen

    def below(count):
        return [formula(draw, depth - 1, scope) for _ in range(count)]

    if depth == 0:
        leaves = [small(term()), less(term(), term()), term() == term(), term() != term(), yes]
        return draw.choice(leaves)
    match draw.randrange(9):
        case 0 | 1:
            return z3.And(below(draw.randint(2, 3)))
        case 2 | 3:
            return z3.Or(below(draw.randint(2, 3)))
        case 4:
            return z3.Implies(*below(2))
        case 5:
            return z3.Not(*below(1))
        case 6:
            left, right = below(2)
            return left == right
        case 7:
            return z3.If(*below(3))
    name = z3.Const(draw.choice(["X", "Y"]) + str(len(scope)), Digit)
    quantifier = z3.ForAll if draw.random() < 0.5 else z3.Exists
    return quantifier([name], formula(draw, depth - 1, [*scope, name]))


def holds(claim):
    solver = z3.Solver()
    solver.add(*STRUCTURE, claim)
    return solver.check() == z3.sat


@pytest.mark.nightly
@needs_tlc
def test_layout_keeps_the_meaning(tmp_path):
    draw = random.Random(4)
    claims = {}
    for number in range(120):
        claim = formula(draw, 2 + number % 5, [])
        claims[f"claim {number}"] = claim if holds(claim) else z3.Not(claim)
    still = logic.action(lambda s, t: None, name="still")
    export = Export(
        name="Claims",
        vocabulary=logic,
        actions=[still],
        initial=logic.state().x == ONE,
        invariants={},
        axioms=claims,
    )
    text = module(export)
    assert len(re.findall(r"^ +(?:/\\|\\/|=>|<=>|THEN|ELSE) ", text, flags=re.M)) > 500
    wanted = TlcModel(
        name="MCClaims",
        extends="Claims",
        definitions={key: ("", text) for key, text in STRUCTURE_TEXT.items()},
    )
    assert counted(run(tmp_path, export, {}, wanted)) == (1, 1)


# -- the text in the repository ------------------------------------------------------------------------

SPECS = tlc.SPECS


def files():
    """What there is of both protocols."""
    return (*classic_files(), *tla_consumer.files())


@pytest.mark.slow
def test_the_text_in_the_repository_is_of_these_formulas(is_updating):
    stale = []
    for name, text in files():
        if is_updating:
            (SPECS / name).write_text(text, encoding="utf-8")
        if not (SPECS / name).exists() or (SPECS / name).read_text(encoding="utf-8") != text:
            stale.append(name)
    assert stale == [], "pytest tests/tools/tla/test_spec_tla.py -k repository --update-expected"
    assert {file.name for file in SPECS.iterdir() if file.suffix in (".tla", ".cfg")} == {*dict(files())}


@pytest.mark.slow
@pytest.mark.covering
@needs_tlc
@pytest.mark.parametrize("name", ["MCConsumerGroup", "MCBroken", "MCConsumerProtocol", "MCBrokenConsumer"])
def test_the_protocol_is_tla(name):
    output = tlc.run(SPECS, f"{name}.tla", main="tla2sany.SANY")
    assert f"Semantic processing of module {name}" in output
    assert not re.search(r"[Ee]rror|[Ww]arning|Abort", output), output


GROUP = {group.name: group for group in tlc.GROUPS}
LARGE = {
    "MCConsumerGroup",
    "one_member",
    "two_members",
    "two_members_failing",
    "three_members",
    "broken_newest_claim",
    "broken_claims_always_empty",
    "consumer_two_members",
}


@pytest.mark.parametrize("name", GROUP)
def test_every_configuration_asks_for_all_or_for_what_breaks(name):
    invariants = (SPECS / f"{name}.cfg").read_text().partition("INVARIANTS\n")[2].split()
    group = GROUP[name]
    of_consumer = isinstance(group, tla_consumer.ConsumerTlcGroup)
    spec = consumer_safety.specification() if of_consumer else safety.specification()
    every = [camel(one) for one in (*spec.properties, *spec.invariants)]
    assert invariants == ["TypeOK", *([camel(group.broken)] if group.broken else every)]


@needs_tlc
@pytest.mark.timeout(3600)  # TLC takes what the machine leaves it; elsewhere ten minutes are a hang
@pytest.mark.nightly
@pytest.mark.parametrize("name", tiered(GROUP, set(GROUP) - LARGE))
def test_tlc_and_our_own_search_find_what_is_pinned(name):
    group = GROUP[name]
    ours = tlc.by_us(group)
    assert tlc.same(ours, tlc.pinned(group)), ours
    theirs = tlc.by_tlc(group)
    assert tlc.same(theirs, ours), theirs
