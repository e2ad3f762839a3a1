"""Where the source of a Java assignor is, by the class that was compiled from it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from rebalance_verifier.gate.targets.hosts.java.class_file import ClassSource, class_bytes, source_of
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation, locate

SOURCE = """package com.acme;

class Mine {
    static final long HOW = 1L << 40;
    static final double WHAT = 0.5;
    int count = 3;

    String assign(String cluster) {
        return cluster;
    }

    static class Inner {
        Runnable other() {
            return () -> { throw new IllegalStateException("never"); };
        }
    }
}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with its build, and a file of the same name in another package."""
    if shutil.which("javac") is None:
        pytest.skip("needs javac")
    root = tmp_path_factory.mktemp("checkout")
    for folder, text in (("a/com/other", "package com.other;"), ("src/main/java/com/acme", SOURCE)):
        (root / folder).mkdir(parents=True)
        (root / folder / "Mine.java").write_text(text)
    source = "src/main/java/com/acme/Mine.java"
    for out, option in (("target/classes", "-g:source,lines"), ("target/bare", "-g:none")):
        subprocess.run(["javac", option, "-d", out, source], cwd=root, check=True)
    with ZipFile(root / "target" / "my.jar", "w") as jar:
        for path in (root / "target" / "classes").rglob("*.class"):
            jar.write(path, path.relative_to(root / "target" / "classes").as_posix())
    return root


@pytest.mark.parametrize("where", ["target/classes", "target/my.jar", "nothing.jar,target/my.jar"])
def test_a_class_of_the_build_is_found_in_the_checkout(checkout, where, monkeypatch):
    monkeypatch.chdir(checkout)
    spec = f"java:com.acme.Mine@org.apache.kafka:kafka-clients:4.1.0,{where}"
    assert locate(spec, checkout) == SourceLocation("src/main/java/com/acme/Mine.java", 9)
    inner = locate(f"java:com.acme.Mine$Inner@{where}", checkout)
    assert inner == SourceLocation("src/main/java/com/acme/Mine.java", 12), "it has no assign: its first line"


def test_what_cannot_be_known_is_nowhere(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    assert locate("java:com.acme.Mine@target/bare", checkout) is None
    assert locate("java:com.acme.Mine", checkout) is None
    assert locate("java:com.acme.Nothing@target/classes", checkout) is None
    assert locate("java:com.acme.Mine@src/main/java/com/acme/Mine.java", checkout) is None, "no jar"
    assert locate("java:com.acme.Mine@target/my.jar", checkout / "target") is None, "no source below"


def test_what_is_cut_off_is_no_class(checkout):
    whole = class_bytes("com.acme.Mine", [checkout / "target/classes"])
    assert whole is not None
    assert source_of(whole, "assign") == ClassSource("Mine.java", 9)
    for data in (b"", whole[:3], whole[:40], b"\0" * 50):
        with pytest.raises(ValueError, match="this is no class file"):
            source_of(data, "assign")
