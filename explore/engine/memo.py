"""Actions, views and rules, each called once for every distinct value of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.base.interning import Numbered
from rebalance_verifier.explore.engine.tables import Array, Column, Growing, Lookup
from rebalance_verifier.model.machine import Action, Event, Machine, Value, When
from rebalance_verifier.properties.group.rules import Always, Rules

Columns = list[Array]
"""States as a struct of arrays: for each component the numbers of its values."""


class Remark(NamedTuple):
    """Breaches and witnesses that the rules find in a step: (clause, sentence) of those it breaks, clauses
    that it shows."""

    breaches: tuple[tuple[str, str], ...] = ()
    shows: tuple[str, ...] = ()


class ChangingView(NamedTuple):
    """A view of what an action reads: of which values, and which of them it writes (-1: not this one)."""

    view: str
    of: Callable[..., Value]
    reads: list[int]
    writes: list[int]

    def after(self, given: Sequence[Value], written: Sequence[Value]) -> Value:
        """Return its value after an outcome of what was ``given``."""
        places = zip(self.reads, self.writes, strict=True)
        return self.of(*[given[old] if new < 0 else written[new] for old, new in places])


class Steps(NamedTuple):
    """The outcomes of one action on a block of states: whence, and which of the remembered outcomes.

    ``states`` are the states that have outcomes, ``each`` says how many each of them has.
    """

    source: NDArray[np.int64]
    outcome: NDArray[np.int64]
    states: NDArray[np.int64]
    each: NDArray[np.int64] | None
    """None when every state has one."""


class ActionTable:
    """An action with its outcomes, remembered for each value of what it reads."""

    def __init__(self, action: Action, machine: Machine, columns: Sequence[Column], rules: Rules) -> None:
        self.action, self.rules, self.columns = action, rules, columns
        self.reads = [machine.position[name] for name in action.reads]
        self.writes = [machine.position[name] for name in action.writes]
        # What is written without being read: its old value is not known to the memory.
        self.blind = [position for position in self.writes if position not in self.reads]
        # An action that reads nothing is looked up by some column, and called without it.
        self.keyed = self.reads or [0]
        self.lookup = Lookup([columns[position] for position in self.keyed], self._ask)
        self.conditions = [self._condition(when, machine) for when in action.when]
        self.allowed: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.start, self.count = Growing(np.int64), Growing(np.int32)
        self.start.extend([0])
        self.count.extend([0])
        self.delta = Growing(np.uint64)
        self.written = [Growing(np.uint32) for _ in self.writes]
        self.remark = Growing(np.int32)
        self.remarks = Numbered([Remark()])
        self.known: dict[tuple[Value, ...], int] = {}
        self.changing = self._changing(machine)
        self.most = 0

    def steps(self, states: Columns) -> Steps | None:
        """Return what the action does in each of ``states``; None when it does nothing in any."""
        chosen = self._chosen(states)
        if chosen is None:
            ids = [states[position] for position in self.keyed]
        elif chosen.size:
            ids = [states[position][chosen] for position in self.keyed]
        else:
            return None
        rows = self.lookup.find(ids)
        count = self.count.room[rows]
        able = np.flatnonzero(count)
        if not able.size:
            return None
        rows = rows[able]
        here = able if chosen is None else chosen[able]
        start = self.start.room[rows]
        if self.most == 1:
            return Steps(here, start, here, None)
        each = count[able].astype(np.int64)
        ends = np.cumsum(each)
        outcome = np.repeat(start - (ends - each), each)
        outcome += np.arange(len(outcome))
        return Steps(np.repeat(here, each), outcome, here, each)

    def change(self, states: Columns, steps: Steps) -> NDArray[np.uint64]:
        """By how much each step changes the hash of the state."""
        delta: NDArray[np.uint64] = self.delta.room[steps.outcome]
        for position in self.blind:
            delta -= self.columns[position].random[states[position][steps.source]]
        return delta

    def remarked(self, steps: Steps) -> list[tuple[Remark, int]]:
        """Return what the rules say of the steps, and of how many."""
        if len(self.remarks) == 1:
            return []
        counts = np.bincount(self.remark.room[steps.outcome], minlength=len(self.remarks)).tolist()
        remarks = zip(self.remarks.values, counts, strict=True)
        return [(r, n) for r, n in remarks if n and isinstance(r, Remark) and r != Remark()]

    def _chosen(self, states: Columns) -> NDArray[np.int64] | None:
        """Return the places of the states in which guard and conditions hold; None for all of them."""
        chosen = None
        guard, first = self.action.guard, self.keyed[0]
        if guard is not None:
            values, known = self.columns[first].values, len(self.allowed)
            if known < len(values):
                new = np.array([bool(guard(value)) for value in values[known:]], np.bool_)
                self.allowed = np.concatenate((self.allowed, new))
            chosen = np.flatnonzero(self.allowed[states[first]])
        for positions, lookup in self.conditions:
            if chosen is None:
                chosen = np.flatnonzero(lookup.find([states[position] for position in positions]))
            elif chosen.size:
                chosen = chosen[lookup.find([states[position][chosen] for position in positions]) > 0]
        return chosen

    def _condition(self, when: When, machine: Machine) -> tuple[list[int], Lookup]:
        positions = [machine.position[name] for name in when.reads]
        columns = [self.columns[position] for position in positions]

        def ask(tuples: list[list[int]]) -> list[int]:
            return [
                bool(when.holds(*[column.values[i] for column, i in zip(columns, ids, strict=True)]))
                for ids in tuples
            ]

        return positions, Lookup(columns, ask)

    def _ask(self, tuples: list[list[int]]) -> list[int]:
        """Call the action for new values of what it reads; the answers are rows."""
        action, known, changing = self.action, self.known, self.changing
        reads = [self.columns[position].values for position in self.reads]
        old_at = [self.reads.index(position) if position in self.reads else -1 for position in self.writes]
        into: list[list[int]] = [[] for _ in self.writes]
        writes = [
            (self.columns[position].id, old, new.append)
            for position, old, new in zip(self.writes, old_at, into, strict=True)
        ]
        rows: list[int] = []
        counts: list[int] = []
        remarks: list[int] = []
        row = self.start.size
        for ids in tuples:
            given = [values[i] for values, i in zip(reads, ids, strict=False)]
            before = len(remarks)
            was = [one.of(*[given[i] for i in one.reads]) for one in changing]
            for values, choice, seen in action.run(*given):
                for value, (number, old, append) in zip(values, writes, strict=True):
                    # Most of what is written is what was there, as the same object.
                    append(ids[old] if old >= 0 and value is given[old] else number(value))
                changes = tuple(
                    [(old, one.after(given, values)) for old, one in zip(was, changing, strict=True)]
                )
                remark = known.get((choice, seen, changes))
                if remark is None:
                    remark = known[choice, seen, changes] = self._remark(choice, seen, changes)
                remarks.append(remark)
            count = len(remarks) - before
            rows.append(row + len(counts) if count else 0)
            if count:
                counts.append(count)
        if counts:
            self._store(tuples, rows, counts, into, old_at)
            self.remark.extend(remarks)
            self.most = max(self.most, *counts)
        return rows

    def _store(
        self,
        tuples: list[list[int]],
        rows: list[int],
        counts: list[int],
        written: list[list[int]],
        old_at: list[int],
    ) -> None:
        """Append the rows of those ``tuples`` that have outcomes."""
        each = np.array(counts)
        self.start.extend(self.delta.size + np.cumsum(each) - each)
        self.count.extend(each)
        ids = np.repeat(np.array(tuples)[np.array(rows) > 0], each, axis=0)
        delta = np.zeros(len(ids), np.uint64)
        for position, new, old, growing in zip(self.writes, written, old_at, self.written, strict=True):
            growing.extend(new)
            random = self.columns[position].random
            delta += random[new]
            if old >= 0:
                delta -= random[ids[:, old]]
        self.delta.extend(delta)

    def _remark(self, choice: str, seen: tuple[Value, ...], changes: tuple[tuple[Value, Value], ...]) -> int:
        event = Event(self.action.name, self.action.who, choice)
        change = dict(zip([one.view for one in self.changing], changes, strict=True)).__getitem__
        return self.remarks.id(
            Remark(tuple(self.rules.at_step(event, seen, change)), tuple(self.rules.shown(event, seen)))
        )

    def _changing(self, machine: Machine) -> list[ChangingView]:
        """Return the views that an ``EachChange`` about this action is asked with."""
        action = self.action
        rules = [rule for rule in self.rules.each_change if rule.concerns(action.name, action.who)]
        found = []
        for name in dict.fromkeys(view for rule in rules for view in rule.views):
            view = machine.view[name]
            if missing := set(view.reads) - set(action.reads):
                raise ValueError(f"{action.name} does not read {min(missing)}, which {name!r} is about")
            at = [action.reads.index(read) for read in view.reads]
            new = [action.writes.index(read) if read in action.writes else -1 for read in view.reads]
            found.append(ChangingView(name, view.of, at, new))
        return found


class AlwaysTable:
    """The ``Always`` rules, remembered for each value of the views they are asked with."""

    def __init__(self, machine: Machine, columns: Sequence[Column], rules: Rules) -> None:
        self.machine, self.columns = machine, columns
        self.values: dict[str, Numbered] = {}
        self.views: dict[str, tuple[list[int], Lookup]] = {}
        self.groups: list[tuple[tuple[str, ...], Numbered, Lookup]] = []
        used = dict.fromkeys(view for rule in rules.always for view in rule.views)
        for name in used:
            numbers = self.values[name] = Numbered()
            positions = [machine.position[read] for read in machine.view[name].reads] or [0]
            look = Lookup([columns[position] for position in positions], self._look(name, numbers))
            self.views[name] = positions, look
        for views, rules_ in groupby(sorted(rules.always, key=_views), key=_views):
            verdicts = Numbered([()])
            judge = self._judge(tuple(rules_), verdicts)
            parts: list[Numbered] = [self.values[view] for view in views]
            self.groups.append((views, verdicts, Lookup(parts or [columns[0]], judge)))

    def breaches(self, states: Columns) -> list[tuple[str, str, NDArray[np.int64]]]:
        """Clause, sentence and the places of the states, for each way in which some of them break a rule."""
        seen = {
            name: look.find([states[p] for p in positions]) for name, (positions, look) in self.views.items()
        }
        found = []
        for views, verdicts, lookup in self.groups:
            verdict = lookup.find([seen[view] for view in views] or [states[0]])
            if len(verdicts) == 1 or not (bad := np.flatnonzero(verdict)).size:
                continue
            numbers = verdict[bad]
            for number in np.flatnonzero(np.bincount(numbers)).tolist():
                where = bad[numbers == number]
                sentences = verdicts.values[number]
                assert isinstance(sentences, tuple)
                found += [(clause, sentence, where) for clause, sentence in sentences]
        return found

    def _look(self, name: str, numbers: Numbered) -> Callable[[list[list[int]]], list[int]]:
        view = self.machine.view[name]
        reads = [self.columns[self.machine.position[read]] for read in view.reads]

        def ask(tuples: list[list[int]]) -> list[int]:
            return [
                numbers.id(view.of(*[column.values[i] for column, i in zip(reads, ids, strict=False)]))
                for ids in tuples
            ]

        return ask

    def _judge(self, rules: tuple[Always, ...], verdicts: Numbered) -> Callable[[list[list[int]]], list[int]]:
        numbers = [self.values[view] for view in rules[0].views]

        def ask(tuples: list[list[int]]) -> list[int]:
            answers = []
            for ids in tuples:
                values = [part.values[i] for part, i in zip(numbers, ids, strict=False)]
                sentences = [(rule.clause, rule.breach(*values)) for rule in rules]
                answers.append(verdicts.id(tuple(pair for pair in sentences if pair[1] is not None)))
            return answers

        return ask


def _views(rule: Always) -> tuple[str, ...]:
    return rule.views
