"""Optimal placement by minimum-cost flow, exact for unequal subscriptions and for racks.

Partitions of one topic whose racks are equal are interchangeable, so the flow is between *lots* (equal
partitions, with a count) and members. Three wishes are served in lexicographic order:

1. Balance. The load vector, sorted descending, is the smallest possible one (an optimal semi-matching:
   Harvey, Ladner, Lovasz, Tamir, "Semi-matchings for bipartite graphs and load balancing", 2006).
   ``blocks`` splits the group until every part is perfectly even.
2. Racks (KIP-881). As many partitions as possible are with a member in the rack of a replica.
3. Stickiness (KIP-54). As many claims as possible are kept.

``place`` finds 2 and 3 within 1 by successive shortest paths (Ahuja, Magnanti, Orlin, "Network Flows",
section 9.7), one blocking flow (Dinic) per path cost. Sets of lots and of members are bits of
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
    """The numbers in the set, ascending.

    >>> list(elements(0b1010))
    [1, 3]
    """
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@dataclass(frozen=True, slots=True)
class Lot:
    """``count`` interchangeable partitions: who may have them, whose rack matches, who claims how many."""

    count: int
    takers: Bits
    matching: Bits
    claims: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """Members that share their ``lots`` with nobody else: each gets ``floor`` or one more."""

    floor: int
    lots: Bits
    members: Bits


def blocks(lots: Sequence[Lot], members: int) -> list[Block]:
    """Split ``members`` (0 to n-1) into blocks that exchange nothing in any best balance.

    Let c be the average load of a part, rounded down. If some member cannot get c while partitions are
    left over, the members that the left-over partitions can reach all have c: no partition of theirs
    can go elsewhere, and none should come. The same holds for c + 1 if partitions are left over there.
    Both times the part falls in two. Otherwise everybody has c or c + 1, which cannot be better.
    """
    everyone = 0
    for lot in lots:
        everyone |= lot.takers
    found = []
    parts = [((1 << len(lots)) - 1, everyone)]
    while parts:
        part_lots, part_members = parts.pop()
        if not part_members:
            continue
        flow = Flow(
            [
                Lot(lot.count, lot.takers & part_members, lot.takers & part_members)
                if part_lots >> number & 1
                else Lot(0, 0, 0)
                for number, lot in enumerate(lots)
            ],
            members,
        )
        floor = sum(flow.supply) // part_members.bit_count()
        flow.open(part_members, floor)
        reached_lots, reached = flow.saturate()
        if flow.free:
            parts.append((part_lots & ~reached_lots, part_members & ~reached))
            parts.append((reached_lots, reached))
            continue
        flow.open(part_members, 1)
        reached_lots, reached = flow.saturate()
        if any(flow.supply):
            parts.append((reached_lots, reached))
        else:
            reached_lots = reached = 0
        found.append(Block(floor, part_lots & ~reached_lots, part_members & ~reached))
    return found


def place(lots: Sequence[Lot], members: int) -> list[dict[int, int]]:
    """For each lot, how many of its partitions each member gets: a best placement, always the same one."""
    parts = blocks(lots, members)
    bounded = list(lots)
    for block in parts:
        for number in elements(block.lots):
            lot = lots[number]
            bounded[number] = Lot(
                lot.count, lot.takers & block.members, lot.matching & block.members, lot.claims
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
    """A flow of least cost from lots to the open slots of members, grown by ``saturate``.

    A placement costs 1 if the member does not claim the partition, and ``misplaced`` (more than all
    claims together) if its rack does not match. ``given[lot][member]`` counts placements, of which the
    first ``claims[member]`` are kept claims.
    """

    def __init__(self, lots: Sequence[Lot], members: int) -> None:
        self.lots = lots
        self.supply = [lot.count for lot in lots]
        self.slots = [0] * members
        self.free: Bits = 0  # members with slots left
        self.given: list[dict[int, int]] = [{} for _ in lots]
        # Per lot: members that would keep a claim by taking one more.
        self.missed: list[Bits] = [_members(lot.claims) & lot.takers for lot in lots]
        # Per member: lots it has something of, of these the ones it has more of than it claimed, and the
        # ones that are not in its rack.
        self.has: list[Bits] = [0] * members
        self.gained: list[Bits] = [0] * members
        self.far: list[Bits] = [0] * members
        self.misplaced = sum(self.supply) + 1
        # Node potentials: least costs from the supply, so far. All costs are >= 0, so 0 is a valid start.
        self.lot_price = [0] * len(lots)
        self.member_price = [0] * members

    def open(self, members: Bits, slots: int) -> None:
        """Let each of ``members`` take ``slots`` partitions more."""
        if slots > 0:
            self.free |= members
            for member in elements(members):
                self.slots[member] += slots

    def saturate(self) -> tuple[Bits, Bits]:
        """Fill the open slots from the supply, at least cost, until no path is left from one to the other.

        Returns the lots and the members that the remaining supply can still reach.
        """
        while True:
            cost, reached_lots, reached_members = self._measure()
            if cost is None:
                return reached_lots, reached_members
            lots_at, members_at = _by_value(self.lot_price), _by_value(self.member_price)
            goal = self.free & members_at.get(cost, 0)
            self._deal(cost, goal)
            while self._augment(goal & self.free, lots_at, members_at):
                pass

    # -- edges ---------------------------------------------------------------------------------------

    def _takers(self, lot: int) -> Iterator[tuple[int, Bits]]:
        """Who may take one more of ``lot``, as (cost, members)."""
        takers, missed, matching = self.lots[lot].takers, self.missed[lot], self.lots[lot].matching
        yield 0, matching & missed
        yield 1, matching & ~missed
        if matching != takers:
            yield self.misplaced, takers & missed & ~matching
            yield self.misplaced + 1, takers & ~missed & ~matching

    def _giveable(self, member: int) -> Iterator[tuple[int, Bits]]:
        """What ``member`` could give back, as (cost, lots): the cost of its last placement of each."""
        has, gained, far = self.has[member], self.gained[member], self.far[member]
        yield 0, has & ~gained & ~far
        yield -1, gained & ~far
        if far:
            yield -self.misplaced, far & ~gained
            yield -self.misplaced - 1, far & gained

    def _room(self, lot: int, member: int) -> int:
        """How many of ``lot`` the member can take at the cost of the first one."""
        return self.lots[lot].claims.get(member, 0) - self.given[lot].get(member, 0)

    def _shift(self, lot: int, member: int, change: int) -> None:
        """Give ``member`` more (or less) of ``lot``."""
        given = self.given[lot]
        now = given.get(member, 0) + change
        given[member] = now
        claimed = self.lots[lot].claims.get(member, 0)
        bit = 1 << lot
        if now:
            self.has[member] |= bit
            if not self.lots[lot].matching >> member & 1:
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
                self.missed[lot] |= 1 << member
            else:
                self.missed[lot] &= ~(1 << member)

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
        for lot, left in enumerate(self.supply):
            if left:
                supply |= 1 << lot
        lots_at, members_at = _by_value(self.lot_price), _by_value(self.member_price)
        seen_lots = seen_members = 0
        cost: int | None = None
        waiting: dict[int, list[Bits]] = {0: [supply, 0]} if supply else {}
        settled: list[tuple[int, Bits, Bits]] = []
        while waiting:
            distance = min(waiting)
            if cost is not None and distance > cost:
                break
            new_lots, new_members = waiting.pop(distance)
            new_lots &= ~seen_lots
            new_members &= ~seen_members
            seen_lots |= new_lots
            seen_members |= new_members
            settled.append((distance, new_lots, new_members))
            for lot in elements(new_lots):
                base = distance + self.lot_price[lot]
                for step, takers in self._takers(lot):
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
                for step, lots in self._giveable(member):
                    lots &= ~seen_lots
                    if lots:
                        for price, there in lots_at.items():
                            if lots & there:
                                waiting.setdefault(base + step - price, [0, 0])[0] |= lots & there
        if cost is not None:
            self.lot_price = [price + cost for price in self.lot_price]
            self.member_price = [price + cost for price in self.member_price]
            for distance, lots, members in settled:
                for lot in elements(lots):
                    self.lot_price[lot] += distance - cost
                for member in elements(members):
                    self.member_price[member] += distance - cost
        return cost, seen_lots, seen_members

    # -- blocking flow on the edges of the shortest paths --------------------------------------------

    def _deal(self, cost: int, goal: Bits) -> None:
        """Hand out what goes from the supply to a free slot directly, which is nearly everything.

        Claims go back in one piece; the rest is dealt one each to those with most slots left, so that
        the partitions of a topic spread. Lots with few takers choose first.
        """
        waiting = [lot for lot, left in enumerate(self.supply) if left]
        waiting.sort(key=lambda lot: self.lots[lot].takers.bit_count())
        with_slots = _by_value(self.slots)
        for lot in waiting:
            takers = dict(self._takers(lot)).get(cost, 0) & goal & self.free
            if cost in (0, self.misplaced):
                for member in elements(takers):
                    count = min(self.supply[lot], self.slots[member], self._room(lot, member))
                    if count:
                        self._give(lot, member, count)
                continue
            while self.supply[lot] and takers:
                for member in self._roomiest(takers, self.supply[lot], with_slots):
                    slots, bit = self.slots[member], 1 << member
                    with_slots[slots] ^= bit
                    with_slots[slots - 1] = with_slots.get(slots - 1, 0) | bit
                    if not with_slots[slots]:
                        del with_slots[slots]
                    self._give(lot, member, 1)
                takers &= self.free

    def _roomiest(self, members: Bits, most: int, with_slots: Mapping[int, Bits]) -> list[int]:
        """Up to ``most`` of ``members``, those with most slots left first."""
        if members.bit_count() <= len(with_slots):
            return sorted(elements(members), key=lambda member: -self.slots[member])[:most]
        chosen: list[int] = []
        for slots in sorted(with_slots, reverse=True):
            chosen += islice(elements(members & with_slots[slots]), most - len(chosen))
        return chosen

    def _give(self, lot: int, member: int, count: int) -> None:
        self._shift(lot, member, count)
        self._arrive(member, count)
        self.supply[lot] -= count

    def _augment(self, goal: Bits, lots_at: Mapping[int, Bits], members_at: Mapping[int, Bits]) -> bool:
        """One phase of Dinic's algorithm: a blocking flow along the shortest paths of fewest edges."""

        def ahead(node: int, depth: int) -> Bits:
            """Where the cheapest paths go on from ``node``: a lot at even depth, else a member."""
            if depth % 2 == 0:
                price, edges, there = self.lot_price[node], self._takers(node), members_at
            else:
                price, edges, there = self.member_price[node], self._giveable(node), lots_at
            result = 0
            for step, nodes in edges:
                result |= nodes & there.get(price + step, 0)
            return result

        supply = 0
        for lot, left in enumerate(self.supply):
            if left:
                supply |= 1 << lot
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
        """Move as much as possible along lot, member, lot, ..., member."""
        count = min(self.supply[path[0]], self.slots[path[-1]])
        for lot, member in zip(path[::2], path[1::2], strict=True):
            room = self._room(lot, member)
            count = min(count, room) if room > 0 else count
        for member, lot in zip(path[1::2], path[2::2], strict=False):
            gained = -self._room(lot, member)
            count = min(count, gained if gained > 0 else self.given[lot][member])
        for lot, member in zip(path[::2], path[1::2], strict=True):
            self._shift(lot, member, count)
        for member, lot in zip(path[1::2], path[2::2], strict=False):
            self._shift(lot, member, -count)
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
