"""How a Java assignor is named, resolved and asked, as far as that needs no Java."""

from __future__ import annotations

import json
import os
import signal
import zipfile

import pytest
from rebalance_verifier.base.processes.lines import Garbage, from_line
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.java import JavaTarget, parse, spelled
from rebalance_verifier.gate.targets.hosts.messages import (
    assign_request,
    decode_assignment,
    decode_user_data,
    user_data_request,
)
from rebalance_verifier.gate.targets.resolve import Target, resolve
from rebalance_verifier.gate.targets.smoke import schema
from rebalance_verifier.live.artifacts import maven
from rebalance_verifier.live.artifacts.maven import checked
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import Asker

COOPERATIVE = "java:org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
CLIENTS = "org.apache.kafka:kafka-clients:4.1.0"


@pytest.fixture
def programs(only_programs, tmp_path, monkeypatch):
    """A PATH with nothing but what is put there; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return only_programs


# --- one string that names all of it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        f"{COOPERATIVE}@{CLIENTS}",
        "java:Own@lib/own.jar,/opt/kafka/libs/*",
        f"java:com.acme.Own$Inner@{CLIENTS},own.jar?max.share=0.5,mode=a%2Cb#balanced,sticky",
        "java:Own@own.jar#sticky",
        "java:com.acme.Both/share@own.jar?mode=x",
    ],
)
def test_a_spec_is_the_same_when_it_is_read_and_written(spec):
    assert str(parse(spec)) == spec


def test_parts_of_a_spec():
    found = parse(f"java:Own@{CLIENTS},own.jar?mode=a%2Cb%23c,empty=#sticky,balanced")
    assert found == JavaTarget(
        class_name="Own",
        where=(CLIENTS, "own.jar"),
        config=(("mode", "a,b#c"), ("empty", "")),
        promises=(Promise.STICKY, Promise.BALANCED),
    )
    assert parse(str(found)) == found


def test_options_are_written_into_the_spec():
    spec = spelled("java:Own", [CLIENTS], ["a.jar:b.jar", "c.jar"], ["mode=x=y,z", "n=1"], ["sticky"])
    assert spec == f"java:Own@{CLIENTS},a.jar,b.jar,c.jar?mode=x%3Dy%2Cz,n=1#sticky"
    assert parse(spec).config == (("mode", "x=y,z"), ("n", "1"))


def test_promises_are_those_of_the_documentation_or_of_the_user():
    assert Promise.STICKY in parse(f"{COOPERATIVE}@{CLIENTS}").promised
    assert parse(f"{COOPERATIVE}@{CLIENTS}#balanced").promised == (Promise.BALANCED,)
    assert parse("java:com.acme.CooperativeStickyAssignor@a.jar").promised == ()


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (COOPERATIVE, ["does not say where the class is", "--maven", "--classpath"]),
        ("java:", ["no name of a Java class"]),
        ("java:no-class@a.jar", ["'no-class' is no name of a Java class"]),
        ("java:Own@a.jar?mode", ["expected KEY=VALUE", "'mode'"]),
        ("java:Own@a.jar#fair", ["'fair' is not a valid Promise", "balanced-per-topic"]),
        ("java:Own@missing.jar", ["there is no 'missing.jar'"]),
        ("java:Own@nowhere/*", ["there is no 'nowhere/*'"]),
    ],
)
def test_specs_that_are_wrong(spec, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetError) as error:
        resolve(spec)
    for text in texts:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["java:Own", "--maven", "kafka-clients"], "expected GROUP:ARTIFACT:VERSION"),
        (["java:Own", "--classpath", "a.jar", "--config", "x"], "expected KEY=VALUE"),
        (["java:Own", "--classpath", "a,b.jar"], "cannot be named"),
        (["java:Own", "--classpath", "a.jar", "--promise", "fair"], "of an assignor of partitions: balanced"),
        (["range", "--maven", CLIENTS], "go with java:CLASS and streams:RELEASE, not 'range'"),
        (["--config", "a=b"], "go with java:CLASS and streams:RELEASE, not None"),
    ],
)
@pytest.mark.parametrize("command", [("check",), ("check", "--adapter")])
def test_options_that_are_wrong(command, argv, text, rebalance):
    ran = rebalance(*command, *argv)
    assert ran.code == 2
    assert text in ran.err


def test_class_path_is_jars_directories_and_wildcards(tmp_path):
    directory = tmp_path / "my libs [1]"
    directory.mkdir()
    for name in ("b.jar", "a.jar", "c.txt"):
        (directory / name).touch()
    assert checked([f"{directory}/*", str(directory)]) == [
        f"{directory}/a.jar",
        f"{directory}/b.jar",
        str(directory),
    ]


# --- Maven -----------------------------------------------------------------------------------------------

# What the plugin does: write the class path to the file that mdep.outputFile names.
ANSWERS = """
for word; do case "$word" in -Dmdep.outputFile=*) out="${word#-Dmdep.outputFile=}";; esac; done
echo asked >> "$ASKED"
printf '%s\\n' "$JAR" > "$out"
"""


def test_maven_is_asked_once(programs, tmp_path, monkeypatch):
    programs("mvn", ANSWERS)
    jar, calls = tmp_path / "a.jar", tmp_path / "asked"
    jar.touch()
    monkeypatch.setenv("JAR", str(jar))
    monkeypatch.setenv("ASKED", str(calls))
    assert maven.classpath([CLIENTS]) == (str(jar),)
    (tmp_path / "bin" / "mvn").unlink()
    assert maven.classpath([CLIENTS]) == (str(jar),)
    assert calls.read_text().count("asked") == 1
    with pytest.raises(ToolError, match=r"other:1: there is no mvn: install Maven, or .*--classpath"):
        maven.classpath(["some:other:1"])
    jar.unlink()  # somebody has cleaned up
    with pytest.raises(ToolError, match="there is no mvn"):
        maven.classpath([CLIENTS])


@pytest.mark.parametrize("version", ["4.2.0-SNAPSHOT", "LATEST", "RELEASE"])
def test_maven_is_asked_again_for_a_version_that_moves(version, programs, tmp_path, monkeypatch):
    programs("mvn", ANSWERS)
    calls = tmp_path / "asked"
    monkeypatch.setenv("ASKED", str(calls))
    for jar in ("before.jar", "after.jar"):
        (tmp_path / jar).touch()
        monkeypatch.setenv("JAR", str(tmp_path / jar))
        assert maven.classpath([f"some:own:{version}"]) == (str(tmp_path / jar),)
    assert calls.read_text().count("asked") == 2


def test_a_maven_that_says_nothing_and_does_nothing(programs):
    programs("mvn", "exit 0")
    with pytest.raises(ToolError, match=f"{CLIENTS}: mvn fails: it does not say why"):
        maven.classpath([CLIENTS])


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            "[ERROR] Failed to execute goal: Could not find artifact org.apache.kafka:kafka-clients:jar:9.9",
            f"{CLIENTS}: Maven finds no org.apache.kafka:kafka-clients:jar:9.9",
        ),
        (
            "[ERROR] No dependencies: org.apache.kafka:kafka-clients:jar:9.9 was not found in https://repo.example",
            f"{CLIENTS}: Maven finds no org.apache.kafka:kafka-clients:jar:9.9",
        ),
        ("[ERROR] x: Unknown host repo: Name or service not known", f"{CLIENTS}: mvn reaches no repository"),
        ("[ERROR] Could not transfer: Connection refused", "is there a network?"),
        ("[ERROR]\n[ERROR] The JAVA_HOME is wrong", "mvn fails: The JAVA_HOME is wrong"),
        ("", "mvn fails: it does not say why"),
    ],
)
def test_what_maven_says_becomes_one_line(output, text, programs):
    programs("mvn", f"echo '{output}'\nexit 1")
    with pytest.raises(ToolError) as error:
        maven.classpath([CLIENTS])
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_coordinates_may_have_a_type_and_a_classifier():
    written = maven._dependency("g:a:jar:test:1.0")
    assert "<type>jar</type><classifier>test</classifier>" in written
    assert "<version>1.0</version>" in written


# --- the JVM ---------------------------------------------------------------------------------------------


def test_without_java(programs, tmp_path):
    (tmp_path / "a.jar").touch()
    with pytest.raises(TargetError, match="there is no java: install a JDK"):
        resolve(f"java:Own@{tmp_path}/a.jar")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("error: package org.apache.kafka.common does not exist", "has no kafka-clients, 2.4 or newer"),
        ("Error occurred: java.lang.module.FindException: Module jdk.compiler not found", "not only a JRE"),
        ("Bridge.java:1: error: what?", "Bridge.java does not compile: Bridge.java:1: error: what?"),
    ],
)
def test_a_java_that_cannot_compile_the_bridge(output, text, programs, tmp_path):
    programs("java", f"echo '{output}' >&2\nexit 1")
    (tmp_path / "a.jar").touch()
    with pytest.raises(TargetError, match=text):
        resolve(f"java:Own@{tmp_path}/a.jar")


# As javac writes it, of a Bridge that imported a class which kafka-clients 4.4 has moved.
MOVED = """\
DRAFT/Bridge.java:39: error: cannot find symbol
import org.apache.kafka.common.utils.AppInfoParser;
                                    ^
  symbol:   class AppInfoParser
  location: package org.apache.kafka.common.utils
DRAFT/Bridge.java:187: error: cannot find symbol
  symbol:   variable AppInfoParser
2 errors
"""


@pytest.mark.parametrize("packed", [True, False], ids=["jar", "directory"])
def test_where_there_are_kafka_clients_it_says_what_javac_said(packed, programs, tmp_path):
    draft = 'while [ "$1" != -d ]; do shift; done; draft="${2%/classes}"'
    programs("java", f"{draft}\nPATH=/bin:/usr/bin\nsed \"s#DRAFT#$draft#\" >&2 <<'END'\n{MOVED}END\nexit 1")
    interface = "org/apache/kafka/clients/consumer/ConsumerPartitionAssignor.class"
    where = tmp_path / "clients"
    if packed:
        with zipfile.ZipFile(where, "w") as jar:
            jar.writestr(interface, b"")
    else:
        where.joinpath(interface).parent.mkdir(parents=True)
        where.joinpath(interface).touch()
    with pytest.raises(TargetError) as error:
        resolve(f"java:Own@{where}")
    first, *more = str(error.value).splitlines()
    found = "Bridge.java:39: error: cannot find symbol: class AppInfoParser"
    assert first == f"Bridge.java does not compile: {found}"
    assert "  import org.apache.kafka.common.utils.AppInfoParser;" in more
    assert "take a newer one of ours" in more[-1]
    assert error.value.detail.strip() == MOVED.replace("DRAFT/", "").strip()


def test_compiled_once_for_the_same_java_and_jars(programs, tmp_path):
    made = 'while [ "$1" != -d ]; do shift; done; mkdir -p "$2"; touch "$2/Bridge.class"'
    program = programs("java", f"PATH=/bin:/usr/bin\necho compiles >> '{tmp_path}/log'\n{made}")
    jar = tmp_path / "a.jar"
    jar.touch()
    target = resolve(f"java:Own@{jar}?mode%3Dx=y=z#sticky")
    assert target.command[0] == str(program)
    judged = ("", "", "ConsumerPartitionAssignor", "")  # whose class nobody finds is what Bridge says it is
    assert target.command[-9:] == ("Bridge", "Own", "sticky", *judged, "mode=x", "y=z")
    assert target.spec == f"java:Own@{jar}?mode%3Dx=y=z#sticky"
    assert not target.hosted
    assert resolve(f"java:Own@{jar}").command[:-6] == target.command[:-8]
    assert (tmp_path / "log").read_text() == "compiles\n"
    program.write_text(program.read_text().replace("mkdir", "exit 1; mkdir"))
    os.utime(program, ns=(0, 0))  # another Java
    with pytest.raises(TargetError, match="does not compile"):
        resolve(f"java:Own@{jar}")


def test_the_heap_leaves_room():
    target = Target(
        spec="java:Own",
        command=("java", "-cp", "x", "Bridge"),
        label="",
        heap="-Xmx",
        stack_signal=signal.SIGQUIT,
    )
    assert target.sized(2048) == ("java", "-Xmx1280m", "-cp", "x", "Bridge")
    assert Target(spec="-- x", command=("x", "y"), label="").sized(2048) == ("x", "y")


# --- bytes in replies ------------------------------------------------------------------------------------

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_assignments_may_come_as_bytes():
    data = wire.encode_assignment([T1, T0, T1], b"x", 1).hex()
    assert decode_assignment({"encoded": {"A": data}}) == ({"A": (T1, T0, T1)}, None)


def test_user_data_may_come_within_a_subscription():
    data = wire.encode_subscription(Subscription(topics=("t",), user_data=b"\1\2")).hex()
    assert decode_user_data({"encoded": data}) == b"\1\2"


@pytest.mark.parametrize(
    ("decode", "result", "text"),
    [
        (decode_assignment, {"encoded": {"A": None}}, "encoded of 'A': expected text, got None"),
        (decode_assignment, {"encoded": {"A": "00"}}, "encoded of 'A': version"),
        (decode_assignment, {"encoded": {"A": "xy"}}, "hexadecimal"),
        (decode_assignment, {"encoded": {}, "assignment": {}}, "give one of them"),
        (decode_user_data, {"encoded": "", "user_data": None}, "give one of them"),
        (decode_user_data, {"encoded": "0001"}, "topics"),
    ],
)
def test_bytes_that_are_wrong(decode, result, text):
    with pytest.raises(Garbage, match=text):
        decode(result)


def test_a_negative_partition_in_bytes_is_garbage():
    data = wire.encode_assignment([TopicPartition("t", -1)]).hex()
    with pytest.raises(Garbage, match="partition must be an integer >= 0"):
        decode_assignment({"encoded": {"A": data}})


def test_who_asks_for_user_data_is_said_where_it_is_known():
    request = from_line(user_data_request(7, (T0,), 3, Asker("A", ("t", "u")), 9))
    assert request["member"] == {"id": "A", "topics": ["t", "u"]}
    assert request["history"] == 9
    assert {"member", "history"}.isdisjoint(from_line(user_data_request(7, (T0,), 3)))


@pytest.mark.parametrize(
    ("form", "message", "valid"),
    [
        ("request", from_line(user_data_request(7, (T0,), 3, Asker("A", ("t",)), 9)), True),
        ("request", from_line(assign_request(7, RebalanceProtocol.EAGER, Cluster.of({"t": 1}), {}, 9)), True),
        ("request", {**from_line(user_data_request(7, (), -1)), "history": 0}, False),
        ("assign_reply", {"seq": 7, "result": {"encoded": {"A": "00"}}}, True),
        ("assign_reply", {"seq": 7, "result": {"encoded": {}, "assignment": {}}}, False),
        ("assign_reply", {"seq": 7, "result": {}}, False),
        ("user_data_reply", {"seq": 7, "result": {"encoded": "00"}}, True),
        ("user_data_reply", {"seq": 7, "result": {"encoded": None}}, False),
    ],
)
def test_the_schema_knows_these_forms(form, message, valid):
    jsonschema = pytest.importorskip("jsonschema")
    root = {**schema(), "oneOf": [{"$ref": f"#/$defs/{form}"}]}
    found = json.loads(json.dumps(message))
    assert jsonschema.Draft202012Validator(root).is_valid(found) is valid
