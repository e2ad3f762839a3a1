"""``python -m tools.leaders_matrix``: what each client makes of the members of each other as its leader, into
docs/results/client-matrix.md.

For each assignor every client that has it leads a group of one member of its own and one of another client,
which writes what that client writes (``model.written``). Nothing is claimed at first; then the other member
claims half of the partitions, and then the other half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rebalance_verifier.cli.console.terminal import print_err
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.values import (
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.model.written import Dialect, WrittenBy, written
from rebalance_verifier.properties.assignors.calls import Answer, Reply

from tools.docs import table

PAGE = Path(__file__).parents[1] / "docs" / "results" / "client-matrix.md"
MARK = "<!-- written from here on: python -m tools.leaders_matrix -->\n"
PARTITIONS = 4
HALVES = tuple(tuple(TopicPartition("t", index) for index in indexes) for indexes in ((0, 3), (1, 2)))
"""What the other member claims, in turn: whoever reads no claims deals it one of them at most."""
SUBSCRIBED = ("t",)


def newest() -> dict[str, list[WrittenBy]]:
    """Return the rows of the newest releases, by the name of the assignor in JoinGroup."""
    found: dict[str, dict[str, WrittenBy]] = {}
    for row in written():
        if "," not in row.assignors:
            found.setdefault(Dialect(row).protocol, {})[row.client] = row
    return {assignor: [*rows.values()] for assignor, rows in found.items()}


def member(row: WrittenBy, owned: Partitions) -> Subscription:
    """Return the subscription of a member of a client that has ``owned`` since generation 6, if anything."""
    client, since = Dialect(row), 6 if owned else -1
    held = owned if client.keeps else ()
    made = client.claim(owned=held, last=owned, joined=since, since=since)
    return client.subscription(SUBSCRIBED, made)


def led(session: Session, protocol: RebalanceProtocol, leader: WrittenBy, other: WrittenBy) -> str:
    """Say what a leader makes of a member of another client."""
    fresh = answer_of(session, protocol, {"A": member(leader, ()), "B": member(other, ())})
    if not isinstance(fresh, Answer):
        return "refuses"
    counts = {name: len(parts) for name, parts in fresh.assignment.items()}
    if sum(counts.values()) < PARTITIONS:
        return "assigns nothing" if not sum(counts.values()) else "loses"
    if not counts.get("B"):
        return "gives it nothing"
    if not leader.assignors.endswith("sticky"):
        return "gives"
    for half in HALVES:
        claims = answer_of(session, protocol, {"A": member(leader, ()), "B": member(other, half)})
        if not isinstance(claims, Answer):
            return "refuses its claims"
        if set(claims.assignment.get("B", ())) != set(half):
            return "gives, reads no claims"
    return "reads"


def answer_of(session: Session, protocol: RebalanceProtocol, group: GroupSubscription) -> Reply:
    """Return the answer of a leader."""
    return session.assign(protocol, Cluster.of({"t": PARTITIONS}), group)


def cells(assignor: str, rows: Sequence[WrittenBy]) -> Iterator[tuple[str, ...]]:
    """Yield the line of each leader."""
    for leader in rows:
        spec = f"client:{leader.client}=={leader.release}:{leader.assignors}"
        cooperative = assignor.startswith("cooperative")
        protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
        print_err(spec)
        try:
            with Session(resolve(spec)) as session:
                yield leader.client, *(led(session, protocol, leader, other) for other in rows)
        except TargetError as error:
            print_err(f"{spec}: {error}")
            yield leader.client, *("not observed" for _ in rows)


def main() -> None:
    """Ask every leader, write the page."""
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    parts = []
    for assignor, rows in newest().items():
        columns = ("leader \\ member", *(row.client for row in rows))
        parts.append(f"## {assignor}\n\n{table(columns, cells(assignor, rows))}")
    PAGE.write_text(head + MARK + "\n" + "\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
