"""J3 before 2.8.1: the leader's check has nothing to reject, whoever claims what another claims too."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.live.artifacts.maven import CLIENTS

from tests.live.code.played import needs_java

GROUPS = 20_000


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("release", ["2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.0"])
def test_no_double_claim_is_rejected(tmp_path: Path, release: str) -> None:
    jars = maven.classpath([f"{CLIENTS}:{release}"])
    source = Path(__file__).with_name("DoubleClaims.java")
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    subprocess.run([*javac, "-cp", os.pathsep.join(jars), "-d", tmp_path, source], check=True, timeout=120)
    command = [jvm.program(), "-cp", os.pathsep.join([str(tmp_path), *jars]), "DoubleClaims", str(GROUPS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    groups, rejected, threw = map(int, ran.stdout.split())
    assert (groups > GROUPS // 2, rejected) == (True, 0)
    assert (threw > 0) is (release != "2.4.1")  # the constrained algorithm, J2
