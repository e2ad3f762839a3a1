"""Texts that name releases are read as people read them."""

from __future__ import annotations

import pytest
from rebalance_verifier.model.bugs.releases import Releases, parse, version


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("Java", ["Java 0.9.0", "Java 9.9.9"], ["broker 2.4.1"]),
        ("Java 2.4.0", ["Java 2.4.0"], ["Java 2.3.1", "Java 2.4.1", "Java 2.4.0.1"]),
        ("Java to 2.7.1, 2.8.0", ["Java 2.4.0", "Java 2.7.1", "Java 2.8.0"], ["Java 2.7.2", "Java 2.8.1"]),
        ("Java before 3.2.0", ["Java 3.1.2", "Java 0.11.0.1"], ["Java 3.2.0", "Java 3.10.0"]),
        ("Java since 3.10.0", ["Java 3.10.0", "Java 4.0.0"], ["Java 3.9.0"]),
        ("Java 2.8.1 to 3.4.0", ["Java 2.8.1", "Java 2.8.2", "Java 3.4.0"], ["Java 2.8.0", "Java 3.4.1"]),
        ("broker 2.3.0, Java before 2.3.0", ["broker 2.3.0", "Java 2.2.0"], ["broker 2.2.0", "Java 2.3.0"]),
        ("kafka-python, Java to 3.5.1", ["kafka-python 2.0.2", "Java 3.5.1"], ["aiokafka 0.14.0"]),
        ("Java 3.5 in development", [], ["Java 3.4.0", "Java 3.5.0"]),
        ("never", [], ["never 1.0", "Java 1.0"]),
    ],
)
def test_includes(text: str, inside: list[str], outside: list[str]) -> None:
    def has(release: str) -> bool:
        product, number = release.split()
        return parse(text).includes(product, version(number))

    assert [r for r in inside if not has(r)] == []
    assert [r for r in outside if has(r)] == []


def test_development_is_no_release() -> None:
    assert parse("Java 3.5 in development") == Releases()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("before 3.2.0", "does not begin with a product"),
        ("2.4.0", "does not begin with a product"),
        ("never ever", "does not begin with a product"),
        ("", "does not begin with a product"),
        ("Java 2", "'2' is no range"),
        ("Java before", "'before' is no range"),
        ("Java trunk before 3.0.0", "'trunk before 3.0.0' is no range"),
        ("Java 2.4.0; broker", "'2.4.0; broker' is no range"),
        ("Java 2.4.0,2.8.0", "is no range"),
        ("Java 2.8.0 to 2.4.0", "ends before it begins"),
    ],
)
def test_says_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


@pytest.mark.parametrize("text", ["2", "2.x", "v2.4.0", "2.4.", ""])
def test_no_release(text: str) -> None:
    with pytest.raises(ValueError, match=r"write numbers and dots"):
        version(text)
