"""Optimal placement by minimum-cost flow, exact for unequal subscriptions and for racks.

Partitions of one topic whose racks are equal are interchangeable, so the flow is between *classes* (equal
partitions, with a count) and members. Three aims are served in lexicographic order:

1. Balance. The load vector, sorted descending, is the smallest possible one (an optimal semi-matching:
   Harvey, Ladner, Lovasz, Tamir, "Semi-matchings for bipartite graphs and load balancing", 2006).
   ``blocks`` splits the group until every part is perfectly even.
2. Racks (KIP-881). As many partitions as possible are with a member in the rack of a replica.
3. Stickiness (KIP-54). As many claims as possible are kept.

``allocate`` finds 2 and 3 within 1 by successive shortest paths (Ahuja, Magnanti, Orlin, "Network Flows",
section 9.7), one blocking flow (Dinic) per path cost. Sets of classes and of members are bits of
integers: one operation follows all edges of a node at once.

Why two rounds are enough: let T be the placement found in round 1. Round 1 gives out T without the
partitions that are still in other hands. In round 2 the members claim exactly that part of T. T is still
a best placement for 1 and 2, which do not depend on claims, and it keeps every claim; so a best placement
of round 2 keeps every claim too, and the rest is free. Nothing is revoked, so nothing is withheld.
Once everything is placed, the same argument says that another rebalance changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

Bits = int
"""A set of small numbers: bit n is set when n is a member of the set."""


def elements(bits: Bits) -> Iterator[int]:
    """Yield the numbers in the set, ascending.

    >>> list(elements(0b1010))
    [1, 3]
    """
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@dataclass(frozen=True, slots=True)
class PartitionClass:
    """``count`` interchangeable partitions: who may have them, whose rack matches, who claims how many."""

    count: int
    takers: Bits
    matching: Bits
    claims: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """Members that share their ``classes`` with nobody else: each gets ``floor`` or one more."""

    floor: int
    classes: Bits
    members: Bits


def blocks(classes: Sequence[PartitionClass], members: int) -> list[Block]:
    """Split ``members`` (0 to n-1) into blocks that exchange nothing in any best balance.

    Let c be the average load of a part, rounded down. If some member cannot get c while partitions are
    left over, the members that the left-over partitions can reach all have c: no partition of theirs
    can go elsewhere, and none should come. The same holds for c + 1 if partitions are left over there.
    Both times the part falls in two. Otherwise everybody has c or c + 1, which cannot be better.
    """
    everyone = 0
    for kind in classes:
        everyone |= kind.takers
    found = []
    parts = [((1 << len(classes)) - 1, everyone)]
    while parts:
        part_classes, part_members = parts.pop()
        if not part_members:
            continue
        flow = Flow(
            [
                PartitionClass(
                    kind.count,
                    kind.takers & part_members,
                    kind.takers & part_members,
                )
                if part_classes >> number & 1
                else PartitionClass(0, 0, 0)
                for number, kind in enumerate(classes)
            ],
            members,
        )
        floor = sum(flow.supply) // part_members.bit_count()
        flow.open(part_members, floor)
        reached_classes, reached = flow.saturate()
        if flow.free:
            parts.append((part_classes & ~reached_classes, part_members & ~reached))
            parts.append((reached_classes, reached))
            continue
        flow.open(part_members, 1)
        reached_classes, reached = flow.saturate()
        if any(flow.supply):
            parts.append((reached_classes, reached))
        else:
            reached_classes = reached = 0
        found.append(Block(floor, part_classes & ~reached_classes, part_members & ~reached))
    return found


def allocate(classes: Sequence[PartitionClass], members: int) -> list[dict[int, int]]:
    """For each class, how many of its partitions each member gets: a best placement, always the same one."""
    parts = blocks(classes, members)
    bounded = list(classes)
    for block in parts:
        for number in elements(block.classes):
            kind = classes[number]
            bounded[number] = PartitionClass(
                kind.count,
                kind.takers & block.members,
                kind.matching & block.members,
                kind.claims,
            )
    flow = Flow(bounded, members)
    for block in parts:
        flow.open(block.members, block.floor)
    flow.saturate()
    for block in parts:
        flow.open(block.members, 1)
    flow.saturate()
    return flow.given


class Flow:
    """A flow of least cost from classes to the open slots of members, grown by ``saturate``.

    A placement costs 1 if the member does not claim the partition, and ``misplaced`` (more than all
    claims together) if its rack does not match. ``given[kind][member]`` counts placements, of which the
    first ``claims[member]`` are kept claims.
    """

    def __init__(self, classes: Sequence[PartitionClass], members: int) -> None:
        self.classes = classes
        self.supply = [kind.count for kind in classes]
        self.slots = [0] * members
        self.free: Bits = 0  # members with slots left
        self.given: list[dict[int, int]] = [{} for _ in classes]
        # Per class: members that would keep a claim by taking one more.
        self.missed: list[Bits] = [_members(kind.claims) & kind.takers for kind in classes]
        # Per member: classes it has something of, of these the ones it has more of than it claimed, and the
        # ones that are not in its rack.
        self.has: list[Bits] = [0] * members
        self.gained: list[Bits] = [0] * members
        self.far: list[Bits] = [0] * members
        self.misplaced = sum(self.supply) + 1
        # Node potentials: least costs from the supply, so far. All costs are >= 0, so 0 is a valid start.
        self.class_price = [0] * len(classes)
        self.member_price = [0] * members

    def open(self, members: Bits, slots: int) -> None:
        """Let each of ``members`` take ``slots`` partitions more."""
        if slots > 0:
            self.free |= members
            for member in elements(members):
                self.slots[member] += slots

    def saturate(self) -> tuple[Bits, Bits]:
        """Fill the open slots from the supply, at least cost, until no path is left from one to the other.

        Returns the classes and the members that the remaining supply can still reach.
        """
        while True:
            cost, reached_classes, reached_members = self._measure()
            if cost is None:
                return reached_classes, reached_members
            classes_at, members_at = _by_value(self.class_price), _by_value(self.member_price)
            goal = self.free & members_at.get(cost, 0)
            self._deal(cost, goal)
            while self._augment(goal & self.free, classes_at, members_at):
                pass

    # -- edges ---------------------------------------------------------------------------------------

    def _takers(self, kind: int) -> Iterator[tuple[int, Bits]]:
        """Yield who may take one more of ``kind``, as (cost, members)."""
        takers, missed, matching = (
            self.classes[kind].takers,
            self.missed[kind],
            self.classes[kind].matching,
        )
        yield 0, matching & missed
        yield 1, matching & ~missed
        if matching != takers:
            yield self.misplaced, takers & missed & ~matching
            yield self.misplaced + 1, takers & ~missed & ~matching

    def _giveable(self, member: int) -> Iterator[tuple[int, Bits]]:
        """Yield what ``member`` could give back, as (cost, classes): the cost of its last placement of
        each."""
        has, gained, far = self.has[member], self.gained[member], self.far[member]
        yield 0, has & ~gained & ~far
        yield -1, gained & ~far
        if far:
            yield -self.misplaced, far & ~gained
            yield -self.misplaced - 1, far & gained

    def _room(self, kind: int, member: int) -> int:
        """Return how many of ``kind`` the member can take at the cost of the first one."""
        return self.classes[kind].claims.get(member, 0) - self.given[kind].get(member, 0)

    def _shift(self, kind: int, member: int, change: int) -> None:
        """Give ``member`` more (or less) of ``kind``."""
        given = self.given[kind]
        now = given.get(member, 0) + change
        given[member] = now
        claimed = self.classes[kind].claims.get(member, 0)
        bit = 1 << kind
        if now:
            self.has[member] |= bit
            if not self.classes[kind].matching >> member & 1:
                self.far[member] |= bit
        else:
            self.has[member] &= ~bit
            self.far[member] &= ~bit
        if now > claimed:
            self.gained[member] |= bit
        else:
            self.gained[member] &= ~bit
        if claimed:
            if now < claimed:
                self.missed[kind] |= 1 << member
            else:
                self.missed[kind] &= ~(1 << member)

    def _arrive(self, member: int, count: int) -> None:
        self.slots[member] -= count
        if not self.slots[member]:
            self.free &= ~(1 << member)

    # -- shortest paths ------------------------------------------------------------------------------

    def _measure(self) -> tuple[int | None, Bits, Bits]:
        """Dijkstra over reduced costs; raises the prices to the distances found.

        Returns the cost of the cheapest path from the supply to a free slot, or None, and what was reached.
        """
        supply = 0
        for kind, left in enumerate(self.supply):
            if left:
                supply |= 1 << kind
        classes_at, members_at = _by_value(self.class_price), _by_value(self.member_price)
        seen_classes = seen_members = 0
        cost: int | None = None
        waiting: dict[int, list[Bits]] = {0: [supply, 0]} if supply else {}
        settled: list[tuple[int, Bits, Bits]] = []
        while waiting:
            distance = min(waiting)
            if cost is not None and distance > cost:
                break
            new_classes, new_members = waiting.pop(distance)
            new_classes &= ~seen_classes
            new_members &= ~seen_members
            seen_classes |= new_classes
            seen_members |= new_members
            settled.append((distance, new_classes, new_members))
            for kind in elements(new_classes):
                base = distance + self.class_price[kind]
                for step, takers in self._takers(kind):
                    takers &= ~seen_members
                    if takers:
                        for price, there in members_at.items():
                            if takers & there:
                                waiting.setdefault(base + step - price, [0, 0])[1] |= takers & there
            for member in elements(new_members & self.free):
                here = distance + self.member_price[member]
                cost = here if cost is None else min(cost, here)
            for member in elements(new_members):
                base = distance + self.member_price[member]
                for step, classes in self._giveable(member):
                    classes &= ~seen_classes
                    if classes:
                        for price, there in classes_at.items():
                            if classes & there:
                                waiting.setdefault(base + step - price, [0, 0])[0] |= classes & there
        if cost is not None:
            self.class_price = [price + cost for price in self.class_price]
            self.member_price = [price + cost for price in self.member_price]
            for distance, classes, members in settled:
                for kind in elements(classes):
                    self.class_price[kind] += distance - cost
                for member in elements(members):
                    self.member_price[member] += distance - cost
        return cost, seen_classes, seen_members

    # -- blocking flow on the edges of the shortest paths --------------------------------------------

    def _deal(self, cost: int, goal: Bits) -> None:
        """Hand out what goes from the supply to a free slot directly, which is nearly everything.

        Claims go back in one piece; the rest is dealt one each to those with most slots left, so that
        the partitions of a topic spread. Lots with few takers choose first.
        """
        waiting = [kind for kind, left in enumerate(self.supply) if left]
        waiting.sort(key=lambda kind: self.classes[kind].takers.bit_count())
        with_slots = _by_value(self.slots)
        for kind in waiting:
            takers = dict(self._takers(kind)).get(cost, 0) & goal & self.free
            if cost in (0, self.misplaced):
                for member in elements(takers):
                    count = min(self.supply[kind], self.slots[member], self._room(kind, member))
                    if count:
                        self._give(kind, member, count)
                continue
            while self.supply[kind] and takers:
                for member in self._roomiest(takers, self.supply[kind], with_slots):
                    slots, bit = self.slots[member], 1 << member
                    with_slots[slots] ^= bit
                    with_slots[slots - 1] = with_slots.get(slots - 1, 0) | bit
                    if not with_slots[slots]:
                        del with_slots[slots]
                    self._give(kind, member, 1)
                takers &= self.free

    def _roomiest(self, members: Bits, most: int, with_slots: Mapping[int, Bits]) -> list[int]:
        """Return up to ``most`` of ``members``, those with most slots left first."""
        if members.bit_count() <= len(with_slots):
            return sorted(elements(members), key=lambda member: -self.slots[member])[:most]
        chosen: list[int] = []
        for slots in sorted(with_slots, reverse=True):
            chosen += islice(elements(members & with_slots[slots]), most - len(chosen))
        return chosen

    def _give(self, kind: int, member: int, count: int) -> None:
        self._shift(kind, member, count)
        self._arrive(member, count)
        self.supply[kind] -= count

    def _augment(self, goal: Bits, classes_at: Mapping[int, Bits], members_at: Mapping[int, Bits]) -> bool:
        """Run one phase of Dinic's algorithm: a blocking flow along the shortest paths of fewest edges."""

        def ahead(node: int, depth: int) -> Bits:
            """Return where the cheapest paths go on from ``node``: a class at even depth, else a member."""
            if depth % 2 == 0:
                price, edges, there = self.class_price[node], self._takers(node), members_at
            else:
                price, edges, there = self.member_price[node], self._giveable(node), classes_at
            result = 0
            for step, nodes in edges:
                result |= nodes & there.get(price + step, 0)
            return result

        supply = 0
        for kind, left in enumerate(self.supply):
            if left:
                supply |= 1 << kind
        layers: list[Bits] = [supply]
        seen = [supply, 0]
        while layers[-1] and not (len(layers) % 2 == 0 and layers[-1] & goal):
            depth = len(layers) - 1
            layer = 0
            for node in elements(layers[-1]):
                layer |= ahead(node, depth)
            side = (depth + 1) % 2
            layers.append(layer & ~seen[side])
            seen[side] |= layers[-1]
        if not layers[-1]:
            return False
        layers[-1] &= goal
        for source in elements(supply):
            path = [source]
            while path and self.supply[source]:
                depth = len(path) - 1
                if depth == len(layers) - 1:
                    self._push(path)
                    layers[-1] &= self.free
                    path = [source]
                    continue
                onward = ahead(path[-1], depth) & layers[depth + 1]
                if onward:
                    path.append((onward & -onward).bit_length() - 1)
                else:
                    layers[depth] &= ~(1 << path.pop())
        return True

    def _push(self, path: Sequence[int]) -> None:
        """Move as much as possible along class, member, class, ..., member."""
        count = min(self.supply[path[0]], self.slots[path[-1]])
        for kind, member in zip(path[::2], path[1::2], strict=True):
            room = self._room(kind, member)
            count = min(count, room) if room > 0 else count
        for member, kind in zip(path[1::2], path[2::2], strict=False):
            gained = -self._room(kind, member)
            count = min(count, gained if gained > 0 else self.given[kind][member])
        for kind, member in zip(path[::2], path[1::2], strict=True):
            self._shift(kind, member, count)
        for member, kind in zip(path[1::2], path[2::2], strict=False):
            self._shift(kind, member, -count)
        self.supply[path[0]] -= count
        self._arrive(path[-1], count)


def _members(claims: Mapping[int, int]) -> Bits:
    bits = 0
    for member, count in claims.items():
        if count:
            bits |= 1 << member
    return bits


def _by_value(values: Sequence[int]) -> dict[int, Bits]:
    """Value -> the positions that hold it."""
    positions: dict[int, Bits] = {}
    for position, value in enumerate(values):
        positions[value] = positions.get(value, 0) | 1 << position
    return positions
