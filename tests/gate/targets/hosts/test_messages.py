"""What is sent is what is read, and the checks of the code and of the published schema agree."""

import contextlib
import json
from importlib import resources

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rebalance_verifier.base.processes import lines
from rebalance_verifier.base.processes.lines import Garbage
from rebalance_verifier.gate.targets.hosts import messages
from rebalance_verifier.gate.targets.hosts.messages import RefusalReply
from rebalance_verifier.model.assignor import LIMITED, Promise
from rebalance_verifier.model.partitions_json import encode_bytes
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.model.wire import decode_subscription

SCHEMA = json.loads(
    resources.files("rebalance_verifier.traces")
    .joinpath("schemas", "protocol.schema.json")
    .read_text("utf-8")
)

names = st.text(max_size=5)
partitions = st.builds(TopicPartition, st.sampled_from(["t", "u", "ü"]), st.integers(0, 2**31 - 1))
runs = st.lists(partitions, max_size=6).map(tuple)
generations = st.integers(-1, 2**31 - 1)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, max_size=4).map(tuple),
    user_data=st.none() | st.binary(max_size=5),
    owned_partitions=runs,
    generation_id=generations,
    rack_id=st.none() | names,
    group_instance_id=st.none() | names,
    version=st.integers(0, 3),
)
groups = st.dictionaries(names, subscriptions, max_size=4)
clusters = st.dictionaries(
    names, st.lists(st.lists(names, max_size=2).map(tuple), max_size=3).map(tuple)
).map(Cluster)


def valid(form, message):
    validator = jsonschema.Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{form}"}]})
    return validator.is_valid(message)


def over_the_wire(message):
    return read(lines.to_line(message))


def read(line):
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return lines.from_line(line)


def result_of(reply):
    result = messages.decode_reply(reply)
    assert not isinstance(result, RefusalReply), result
    return result


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    hello = SCHEMA["$defs"]["hello"]["properties"]
    assert set(hello["promises"]["items"]["enum"]) == set(Promise)
    assert set(hello) == set(messages.Hello.__dataclass_fields__)
    assert SCHEMA["$defs"]["rebalance_protocol"]["enum"] == list(RebalanceProtocol)


FIELDS = ("topics", "owned", "generation", "rack", "user_data", "version")


@pytest.mark.slow
@given(st.sampled_from(RebalanceProtocol), clusters, groups)
def test_assign_request(protocol, cluster, group):
    request = read(messages.assign_request(7, protocol, cluster, group))
    assert valid("assign_request", request)
    assert valid("request", request)
    read_cluster, read_group = messages.decode_assign(request)
    assert (request["protocol"], read_cluster) == (protocol, cluster)
    assert list(read_cluster.topics) == list(cluster.topics)
    assert list(read_group.items()) == list(group.items())
    for member, subscription in zip(request["members"], group.values(), strict=True):
        wire = decode_subscription(bytes.fromhex(member["metadata"]))
        assert sorted(wire.topics) == sorted(subscription.topics)
        assert wire.version == subscription.version
        for field in FIELDS:
            del member[field]
    assert read(messages.assign_request(7, protocol, cluster, group, metadata_only=True)) == request
    assert valid("assign_request", request)


@pytest.mark.slow
@given(st.dictionaries(names, runs), st.none() | names)
def test_assign_reply(assignment, mutated):
    reply = over_the_wire({"seq": 7, "result": messages.encode_assignment(assignment, mutated)})
    assert valid("assign_reply", reply)
    assert valid("reply", reply)
    assert messages.reply_seq(reply) == 7
    read, read_mutated = messages.decode_assignment(result_of(reply))
    assert list(read.items()) == list(assignment.items())
    assert read_mutated == mutated


@given(runs, generations, st.none() | st.binary())
def test_user_data(owned, generation, data):
    request = read(messages.user_data_request(1, owned, generation))
    assert valid("user_data_request", request)
    assert messages.decode_user_data_request(request) == (owned, generation)
    reply = over_the_wire({"seq": 1, "result": {"user_data": encode_bytes(data)}})
    assert valid("user_data_reply", reply)
    assert messages.decode_user_data(result_of(reply)) == data


def promising(promises: frozenset[Promise]) -> st.SearchStrategy[messages.Hello]:
    limits = {promise: st.integers(1, 9) for promise in LIMITED if promise in promises}
    return st.builds(
        messages.Hello,
        name=names,
        protocols=st.lists(st.sampled_from(RebalanceProtocol), min_size=1, unique=True).map(tuple),
        version=st.none() | names,
        language=st.none() | names,
        promises=st.just(promises),
        promises_assumed=st.booleans(),
        limits=st.fixed_dictionaries(limits),
        user_data=st.booleans(),
        user_data_from=st.none() | st.frozensets(st.sampled_from(messages.UserDataSource)),
        metadata_only=st.booleans(),
        histories=st.integers(1, 100),
        homepage=st.none() | names,
        issues=st.none() | names,
    )


@given(st.frozensets(st.sampled_from(Promise)).flatmap(promising))
def test_hello(hello):
    reply = over_the_wire({"seq": 0, "result": messages.encode_hello(hello)})
    assert valid("hello_reply", reply)
    assert messages.decode_hello(result_of(reply)) == hello


def test_hello_needs_only_name_and_protocols():
    result = {"name": "n", "protocols": ["eager"]}
    assert valid("hello_reply", {"seq": 0, "result": result})
    assert messages.decode_hello(result) == messages.Hello(name="n", protocols=(RebalanceProtocol.EAGER,))


def test_requests_without_values():
    assert valid("hello_request", read(messages.hello_request()))
    assert valid("bye_request", read(messages.bye_request(9)))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"skipped": {"message": "m"}}, RefusalReply("skipped", "m", "")),
        ({"skipped": {"message": "m", "issue_url": "u"}}, RefusalReply("skipped", "m", "u")),
        ({"errored": {"message": "m", "traceback": "t"}}, RefusalReply("errored", "m", "t")),
        ({"errored": {"message": "m", "traceback": None}}, RefusalReply("errored", "m", "")),
        ({"garbage": {"message": "m"}}, RefusalReply("garbage", "m", "")),
    ],
)
def test_refusals(reply, expected):
    assert messages.decode_reply({"seq": 1, **reply}) == expected
    for form in ("hello_reply", "assign_reply", "user_data_reply"):
        assert valid(form, {"seq": 1, **reply})


# --- what is refused -------------------------------------------------------------------------------------


def hello(**change):
    return {"name": "n", "protocols": ["eager"], **change}


def assignment(runs):
    return {"assignment": {"A": runs}}


BAD_RESULTS = [
    ("hello", {}, "hello: 'protocols' is missing; got []"),
    ("hello", {"protocols": ["eager"]}, "hello: 'name' is missing; got ['protocols']"),
    ("hello", hello(name=None), "hello: name: expected a string, got None"),
    ("hello", hello(protocols="eager"), "hello: protocols: expected an array, got 'eager'"),
    (
        "hello",
        hello(protocols=["lazy"]),
        "hello: protocols: expected one of eager, cooperative, consumer, share, tasks, streams, got 'lazy'",
    ),
    (
        "hello",
        hello(protocols=[]),
        "hello: protocols must name some of eager, cooperative, consumer, share, tasks, streams; got []",
    ),
    ("hello", hello(protocols=["eager", "eager"]), "hello: protocols must name some of"),
    ("hello", hello(promises=["luck"]), "hello: promises: expected one of balanced, balanced-equal"),
    ("hello", hello(user_data=1), "hello: user_data: expected true or false, got 1"),
    ("hello", hello(version=1), "hello: version: expected a string, got 1"),
    ("hello", hello(promise=[]), "hello: unknown key 'promise'; known are name, protocols"),
    ("assign", {}, "assign: 'assignment' is missing; got []"),
    ("assign", {"assignment": None}, "assignment: expected an object, got None"),
    ("assign", {"assignment": [["A", []]]}, "assignment: expected an object, got [['A', []]]"),
    ("assign", {"assignment": {}, "mutated": True}, "mutated: expected a string, got True"),
    (
        "assign",
        {"assignment": {}, "more": 1},
        "assign: unknown key 'more'; known are assignment, encoded, mutated",
    ),
    ("assign", assignment(None), "assignment of 'A': expected an array, got None"),
    ("assign", assignment(["t"]), "assignment of 'A': expected [topic, [partition, ...]], got 't'"),
    ("assign", assignment([["t", 0]]), "assignment of 'A': expected [topic, [partition, ...]], got ['t', 0]"),
    ("assign", assignment([["t"]]), "assignment of 'A': expected [topic, [partition, ...]], got ['t']"),
    ("assign", assignment([[7, [0]]]), "assignment of 'A': topic: expected a string, got 7"),
    ("assign", assignment([["t" * 32768, []]]), "assignment of 'A': topic: longer than 32767 bytes"),
    ("assign", assignment([["t", ["x"]]]), "assignment of 'A': partition must be an integer >= 0, got 'x'"),
    ("assign", assignment([["t", [-1]]]), "assignment of 'A': partition must be an integer >= 0, got -1"),
    ("assign", assignment([["t", [0.5]]]), "assignment of 'A': partition must be an integer >= 0, got 0.5"),
    ("assign", assignment([["t", [True]]]), "assignment of 'A': partition must be an integer >= 0, got True"),
    ("assign", assignment([["t", [2**31]]]), "assignment of 'A': partition must fit an int32"),
    ("user_data", {}, "user_data: 'user_data' is missing"),
    ("user_data", {"user_data": "abc"}, "user_data: expected null or an even number of hexadecimal digits"),
    ("user_data", {"user_data": "ab cd"}, "user_data: expected null or an even number of hexadecimal digits"),
    ("user_data", {"user_data": [1]}, "user_data: expected null or an even number of hexadecimal digits"),
]


@pytest.mark.parametrize(("kind", "result", "text"), BAD_RESULTS)
def test_wrong_results(kind, result, text):
    """Both the code and the schema refuse them; the code says precisely why."""
    decode = {
        "hello": messages.decode_hello,
        "assign": messages.decode_assignment,
        "user_data": messages.decode_user_data,
    }[kind]
    with pytest.raises(Garbage) as error:
        decode(result)
    assert str(error.value).startswith(text)
    assert not valid(f"{kind}_reply", {"seq": 0, "result": result})


@pytest.mark.parametrize(
    "reply",
    [
        {"seq": 1},
        {"seq": 1, "result": {"assignment": {}}, "skipped": {"message": "m"}},
        {"seq": 1, "answer": {}},
        {"seq": 1, "result": []},
        {"seq": 1, "skipped": {}},
        {"seq": 1, "skipped": {"message": 1}},
        {"seq": 1, "errored": {"message": "m", "trace": "t"}},
        {"seq": 1, "garbage": {"message": "m", "None": "t"}},
    ],
)
def test_wrong_replies(reply):
    with pytest.raises(Garbage):
        messages.decode_reply(reply)
    assert not valid("assign_reply", reply)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"", "not one line of JSON in UTF-8"),
        (b"{}{}", "not one line of JSON in UTF-8"),
        (b'{"a":"\xff"}', "not one line of JSON in UTF-8"),
        (b'{"a":' * 100_000, "not one line of JSON in UTF-8"),
        (b'{"a":' + b"9" * 5000 + b"}", "not one line of JSON in UTF-8"),
        (b"[]", "a message must be a JSON object, got []"),
        (b'{"a":{"b":1,"b":2}}', "key 'b' appears twice in one object"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b'{"a":-Infinity}', "-Infinity is not JSON"),
    ],
)
def test_wrong_lines(line, text):
    with pytest.raises(Garbage) as error:
        lines.from_line(line)
    assert str(error.value).startswith(text)
    assert len(str(error.value)) < 500


def test_members_are_counted_before_any_of_them_is_read():
    """Of 300,000 members each would be read, whatever it is, to say then that they are too many."""
    result = {"assignment": dict.fromkeys(map(str, range(300_000)), "nothing that anybody reads")}
    with pytest.raises(Garbage, match="assignment: 300,000 members, at most 20,000 are read"):
        messages.decode_assignment(result)


def test_half_a_surrogate_pair_is_no_text():
    result = lines.from_line(b'{"assignment":{"\\ud800":[]}}')
    with pytest.raises(Garbage, match="assignment: not valid Unicode"):
        messages.decode_assignment(result)


# --- anything at all -------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-2, 2**32) | st.sampled_from(["t", "eager", "ab", "", "a"])
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["A", "assignment", "name", "message"]), inner, max_size=3)
    ),
    max_leaves=8,
)
almost_runs = st.lists(
    st.lists(st.sampled_from(["t", 1]) | st.lists(scalars, max_size=2), min_size=1, max_size=3) | anything,
    max_size=3,
)
almost_results = {
    "hello": st.fixed_dictionaries(
        {},
        optional={
            "name": st.just("n") | anything,
            "protocols": st.lists(st.sampled_from(["eager", "cooperative", "lazy"]), max_size=2) | anything,
            "promises": st.lists(st.sampled_from(["sticky", "luck"]), max_size=2) | anything,
            "user_data": anything,
            "version": anything,
            "else": anything,
        },
    ),
    "assign": st.fixed_dictionaries(
        {"assignment": st.dictionaries(st.sampled_from(["A", "B"]), almost_runs, max_size=2) | anything},
        optional={"mutated": anything, "else": anything},
    ),
    "user_data": st.fixed_dictionaries({"user_data": anything})
    | st.dictionaries(names, anything, max_size=2),
}


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(almost_results)))
def test_code_and_schema_agree(data, kind):
    """Whatever comes: the code takes it or calls it garbage, and the schema says the same."""
    result = data.draw(almost_results[kind])
    decode = getattr(messages, {"assign": "decode_assignment"}.get(kind, f"decode_{kind}"))
    reply = over_the_wire({"seq": 0, "result": result})
    try:
        decode(messages.decode_reply(reply))
        taken = True
    except Garbage:
        taken = False
    assert taken == valid(f"{kind}_reply", reply)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["seq", "result", "skipped", "errored", "garbage", "x"]), anything))
def test_code_and_schema_agree_on_refusals(reply):
    try:
        taken = messages.reply_seq(reply) >= 0 and isinstance(messages.decode_reply(reply), RefusalReply)
    except Garbage:
        taken = False
    assert taken == valid("refusal", reply)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0e-"\\u d', max_size=30).map(str.encode))
def test_any_line_is_an_object_or_garbage(line):
    with contextlib.suppress(Garbage):
        assert isinstance(lines.from_line(line), dict)
