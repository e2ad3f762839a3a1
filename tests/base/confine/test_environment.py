"""A target sees the variables that programs need, and none that loads code into it or holds a secret."""

from __future__ import annotations

import pytest
from rebalance_verifier.base.confine.environment import PASSED, minimal

LOCALE = {"LC_ALL": "C", "LC_CTYPE": "C", "LC_": "odd"}
NOT_PASSED = (
    *("LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "DYLD_INSERT_LIBRARIES", "LOGNAME", "L", "LC", "LCX"),
    *("lc_all", "XLC_ALL", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHASHSEED", "PYTHON", "JAVA_TOOL_OPTIONS"),
    *("NODE_OPTIONS", "GOFLAGS", "BASH_ENV", "ENV", "IFS", "PS4", "TMPDIR", "TMP", "USER", "PWD", "DISPLAY"),
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_HOST"),
    *("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "HOMEX", "PATHEXT", "PATH2", "", "_", "http_proxy"),
)


def test_what_is_passed_is_what_programs_need_and_their_locale():
    everything = {name: f"of {name}" for name in (*PASSED, *NOT_PASSED)} | LOCALE
    assert minimal((), everything) == {name: f"of {name}" for name in PASSED} | LOCALE


def test_what_is_asked_for_is_passed_by_its_whole_name_where_it_is_set():
    everything = {"MINE": "1", "MINE_TOO": "2", "PATH": "/bin"}
    assert minimal(("MINE", "ABSENT"), everything) == {"MINE": "1", "PATH": "/bin"}


@pytest.mark.parametrize("name", NOT_PASSED)
def test_the_table_names_nothing_that_harms(name):
    assert name not in PASSED
