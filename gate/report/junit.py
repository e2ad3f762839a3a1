"""The report as JUnit XML: one test case per clause and protocol, and one for the run as a whole.

There is a failure or an error in it exactly when the exit code is not 0.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rebalance.gate.report.facts import gating, headline, tally
from rebalance.gate.report.text import block, plain
from rebalance.gate.report.words import clean, cut
from rebalance.gate.result import ClauseResult, Exit, Result, Status

MOST = 10_000
"""Characters in the body of one test case; viewers choke on more."""


def render(result: Result) -> str:
    """The XML text, with its declaration. Nothing in it is illegal in XML 1.0, whatever names say."""
    suite = ET.Element("testsuite", name="rebalance", time=f"{result.seconds:.3f}")
    _properties(
        suite,
        suite_version=result.suite_version,
        target=result.target.spec,
        target_name=result.target.name,
        target_version=result.target.version,
        profile=result.profile,
        level=result.level,
        seed=str(result.seed),
        verdict=result.verdict.value,
    )
    for clause in result.clauses:
        suite.append(_case(result, clause))
    failed = any(case.find("failure") is not None for case in suite.iter("testcase"))
    suite.append(_run(result, failed))
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    suite.set("skipped", str(sum(1 for _ in suite.iter("skipped"))))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(result: Result, clause: ClauseResult) -> ET.Element:
    case = ET.Element("testcase", classname=f"rebalance.{clause.clause.level}", name=clause.id, time="0")
    finding = clause.finding
    trace = finding.path or finding.trace_id if finding else ""
    _properties(case, clause=clause.clause.id, kip=clause.clause.rule, link=clause.clause.link, trace=trace)
    summary = finding.breach.summary if finding else clause.clause.sentence
    match clause.status:
        case Status.PASSED:
            pass
        case Status.VIOLATED if gating(result, clause):
            body = plain(block("VIOLATION", clause), MOST)
            _outcome(case, "failure", summary, body, f"rebalance.{clause.clause.level}")
        case Status.VIOLATED:
            _outcome(case, "skipped", f"broken, but {clause.clause.level} does not gate: {summary}")
            ET.SubElement(case, "system-out").text = plain(block("FINDING", clause), MOST)
        case Status.FIXED:
            _outcome(case, "failure", "holds: remove its line from the known list", "", "rebalance.stale")
        case status:
            _outcome(case, "skipped", f"{status}: {clause.note}" if clause.note else str(status))
    return case


def _run(result: Result, failed: bool) -> ET.Element:
    """What is wrong with the run and belongs to no clause."""
    case = ET.Element("testcase", classname="rebalance.run", name="verdict", time="0")
    for line in result.stale_known:
        message = f"{line} matches no clause: remove line"
        _outcome(case, "failure", message, "", "rebalance.stale")
    explained = result.exit is Exit.CONFORMANT or (
        result.exit is Exit.VIOLATION and (failed or result.stale_known)
    )
    if not explained:
        reasons = "\n".join(clean(reason) for reason in result.missed)
        _outcome(case, "error", headline(result), reasons, f"rebalance.{result.verdict}")
    ET.SubElement(case, "system-out").text = clean(tally(result))
    return case


def _outcome(case: ET.Element, tag: str, message: str, body: str = "", kind: str = "") -> None:
    element = ET.SubElement(case, tag, message=cut(clean(message), 300))
    if kind:
        element.set("type", kind)
    if body:
        element.text = body


def _properties(parent: ET.Element, **values: str) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in values.items():
        if value:
            ET.SubElement(properties, "property", name=name, value=clean(value))
