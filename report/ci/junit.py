"""Cases as JUnit XML: one test case per rule and protocol, and one for the run as a whole.

There is a failure or an error in it exactly when the exit code is not 0. The elements and attributes are
those that Jenkins, GitLab and the readers of GitHub's market look at: docs/reference/formats.md.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rebalance_verifier.base.text import clean, cut
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.report.ci.cases import CiCase, CiReport
from rebalance_verifier.report.markup import plain

MAX_LETTERS = 10_000
"""Characters in the body of one test case; viewers choke on more."""


def render(report: CiReport) -> str:
    """Return the XML text, with its declaration. Nothing in it is illegal in XML 1.0, whatever names say."""
    suite = ET.Element("testsuite", name="rebalance", time=f"{report.seconds:.3f}")
    of_all = (("suite_version", report.suite_version), *report.properties, ("verdict", report.verdict))
    _properties(suite, of_all)
    for case in report.cases:
        suite.append(_case(report, case))
    failed = any(case.find("failure") is not None for case in suite.iter("testcase"))
    suite.append(_run(report, failed))
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    suite.set("skipped", str(sum(1 for _ in suite.iter("skipped"))))
    root = ET.Element("testsuites", time=f"{report.seconds:.3f}")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(report: CiReport, case: CiCase) -> ET.Element:
    rule = case.rule
    element = _element(report, f"rebalance.{rule.level}", case.id)
    trace = next((one.path or one.id for one in case.evidence), "")
    _properties(element, (("clause", rule.id), ("kip", rule.source), ("link", rule.link), ("trace", trace)))
    match case.status:
        case Status.PASSED:
            pass
        case Status.VIOLATED if case.gates:
            _outcome(
                element, "failure", case.message, plain(case.lines, MAX_LETTERS), f"rebalance.{rule.level}"
            )
        case Status.VIOLATED:
            _outcome(
                element,
                "skipped",
                f"broken, but {case.excuse or f'{rule.level} does not gate'}: {case.message}",
            )
            ET.SubElement(element, "system-out").text = plain(case.lines, MAX_LETTERS)
        case Status.FIXED:
            _outcome(element, "failure", "holds: remove its line from the known list", "", "rebalance.stale")
        case status:
            _outcome(element, "skipped", f"{status}: {case.note}" if case.note else str(status))
    return element


def _run(report: CiReport, failed: bool) -> ET.Element:
    """Return what is wrong with the run and belongs to no rule."""
    element = _element(report, "rebalance.run", "verdict")
    for line in report.stale:
        _outcome(element, "failure", f"{line} matches no clause: remove line", "", "rebalance.stale")
    explained = report.exit is Exit.CONFORMANT or (report.exit is Exit.VIOLATION and (failed or report.stale))
    if not explained:
        reasons = "\n".join(clean(reason) for reason in report.missed)
        _outcome(element, "error", report.headline, reasons, f"rebalance.{report.verdict}")
    ET.SubElement(element, "system-out").text = clean(report.tally or report.headline)
    return element


def _element(report: CiReport, group: str, name: str) -> ET.Element:
    """Return a test case; it takes no time of its own, since one search is for all rules."""
    element = ET.Element("testcase", classname=group, name=name, time="0")
    if report.source_location:
        element.set("file", clean(report.source_location.file))
        if report.source_location.line:
            element.set("line", str(report.source_location.line))
    return element


def _outcome(case: ET.Element, tag: str, message: str, body: str = "", kind: str = "") -> None:
    element = ET.SubElement(case, tag, message=cut(clean(message), 300))
    if kind:
        element.set("type", kind)
    if body:
        element.text = body


def _properties(parent: ET.Element, values: tuple[tuple[str, str], ...]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in values:
        if value:
            ET.SubElement(properties, "property", name=name, value=clean(value))
