"""The check of an assignor: plan, search, verdict."""

from __future__ import annotations


def assert_conforms(target_spec: str, scenario: dict[str, object], clause_id: str) -> None:
    """Replay one scenario on a target; raises the clause's ``Violation`` when it is still broken.

    What a test written by ``rebalance replay --as-pytest`` calls, by this name as long as such tests live.
    ``scenario`` is as in a trace. Raises TargetError where the target does not start.
    """
    from rebalance_verifier.gate.search.search import replay
    from rebalance_verifier.gate.targets.resolve import resolve, shared_path
    from rebalance_verifier.gate.targets.session import Session
    from rebalance_verifier.properties.assignors.clause import violation
    from rebalance_verifier.properties.assignors.clauses import CLAUSES
    from rebalance_verifier.properties.assignors.scenarios import from_json

    clause = CLAUSES[clause_id]
    with shared_path(), Session(resolve(target_spec)) as session:
        record = replay(session, from_json(scenario), clause)
    if record.skipped is not None:
        raise RuntimeError(f"{target_spec} declined the scenario: {record.skipped}")
    if found := record.breach_of(clause.id):
        raise violation(clause, found.breach, record.scenario)
