"""The events of ``planted`` as the text that a real log would have: to measure an audit end to end.

lines(events, "java-4.0").write.partitionBy("file").text("logs")
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from rebalance_verifier.pipeline.audit.sources.events import Kind

FORMS = ("events", "java-2.4", "java-4.0")
"""Our own JSON lines, or what clients and brokers of a release write with log4j's usual layout."""


def lines(events: DataFrame, form: str) -> DataFrame:
    """A row for each line: file string, value string, in the order of each file within a task.

    ``form`` is one of FORMS. All lines of a file are in one task. A release says less than ``EVENTS`` can
    hold: no text says more than milliseconds or that a consumer has closed, and 2.4 has no SyncGroup.
    """
    if form not in FORMS:
        raise ValueError(f"no such form: {form!r}; there are {', '.join(FORMS)}")
    name = F.concat_ws("-", "topic", "partition")
    by_line = events.groupBy("file", "line").agg(
        *(F.first(c, ignorenulls=True).alias(c) for c in ("at", "kind", "group", "consumer", "generation")),
        *(F.first(c, ignorenulls=True).alias(c) for c in ("member", "detail", "host")),
        F.array_sort(F.collect_list(F.when(F.col("partition").isNotNull(), name))).alias("names"),
        F.array_sort(F.collect_list(F.when(F.col("partition").isNull(), F.col("topic")))).alias("topics"),
        F.array_sort(F.collect_list(F.when(F.col("kind") == Kind.PLANNED, F.struct("member", name)))).alias(
            "plan"
        ),
    )
    value = _json() if form == "events" else _logged(form.removeprefix("java-"))
    return (
        by_line.select("file", "at", "line", value.alias("value"))
        .where("value is not null")
        .repartition("file")
        .sortWithinPartitions("file", "at", "line")
        .select("file", "value")
    )


def _json() -> Column:
    """A line of ``events.JSON``. PLANNED tells one member for all partitions, so it is left to ASSIGNED."""
    some = F.when(F.size("names") > 0, F.col("names")).alias("partitions")
    topics = F.when(F.size("topics") > 0, F.col("topics")).alias("topics")
    at = F.date_format("at", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'").alias("at")
    event = F.col("kind").alias("event")
    rest = ("group", "consumer", "member", "generation", "detail", "host")
    return F.when(F.col("kind") != Kind.PLANNED, F.to_json(F.struct(at, event, *rest, topics, some)))


def _logged(release: str) -> Column:
    """What log4j writes."""
    old = release == "2.4"
    group, generation, member = F.col("group"), F.col("generation").cast("string"), F.col("member")
    detail, names = F.col("detail"), F.concat_ws(", ", "names")
    whole = _text("Generation{generationId=", generation, ", memberId='", member, "', protocol='sticky'}")
    joined = generation if old else whole
    reset = (
        _text("Giving away all assigned partitions as lost since generation has been reset,")
        if old
        else _text(
            "Resetting generation and member id due to: encountered ", detail, " from HEARTBEAT response"
        )
    )
    client: dict[Kind, tuple[Column, str]] = {
        Kind.STARTED: (_text("Cluster ID: JGXtV9pVQ2KhPqLrZQo1Hg"), "Metadata"),
        Kind.SUBSCRIBED: (_text("Subscribed to topic(s): ", F.concat_ws(", ", "topics")), "KafkaConsumer"),
        Kind.JOINING: (_text("(Re-)joining group"), _ABSTRACT),
        Kind.JOINED: (_text("Successfully joined group with generation ", joined), _ABSTRACT),
        Kind.PLANNED: (
            _text("Finished assignment for group at generation ", generation, ": {", _plan(), "}"),
            _CONSUMER,
        ),
        Kind.ASSIGNED: (_text("Adding newly assigned partitions: ", names), _CONSUMER),
        Kind.REVOKED: (_text("Revoke previously assigned partitions ", names), _CONSUMER),
        Kind.LOST: (_text("Lost previously assigned partitions ", names), _CONSUMER),
        Kind.RESET: (reset, _ABSTRACT),
        Kind.LEAVING: (
            _text(
                *("Member ", member, " sending LeaveGroup request to coordinator "),
                "broker-0:9092 (id: 2147483647 rack: null) due to the consumer is being closed",
            ),
            _ABSTRACT,
        ),
    }
    if not old:
        client[Kind.SYNCED] = (_text("Successfully synced group in generation ", whole), _ABSTRACT)
    topic = _text(" (__consumer_offsets-", F.pmod(F.hash("group"), F.lit(50)).cast("string"), ")")
    middle = topic if old else F.lit("")
    end = F.lit("" if old else ".")
    state = "PreparingRebalance" if old else "PREPARING_REBALANCE"
    broker: dict[Kind, Column] = {
        Kind.PREPARING: _text(
            *("Preparing to rebalance group ", group, f" in state {state} with old generation ", generation),
            *(middle, " (reason: ", detail, ")", end),
        ),
        Kind.STABLE: _text(
            *("Stabilized group ", group, " generation ", generation, middle, " with ", detail, end),
        ),
        Kind.REMOVED: _text(
            "Member ", member, " in group ", group, " has failed, removing it from the group"
        ),
        Kind.EMPTY: _text("Group ", group, " with generation ", generation, " is now empty", middle, end),
    }
    cases: Column | None = None
    who = _text(
        "[Consumer clientId=", F.regexp_extract("consumer", "^(.*)@", 1), ", groupId=", group, "] "
    )  # fmt: skip
    for kind, (text, logger) in client.items():
        text = _text(who, text, f" (org.apache.kafka.clients.consumer.internals.{logger})")
        cases = _when(cases, kind, text)
    prefix = (
        "[GroupCoordinator 0]: " if old else "[GroupCoordinator id=0 topic=__consumer_offsets partition=7] "
    )
    logger = (
        "kafka.coordinator.group.GroupCoordinator"
        if old
        else "org.apache.kafka.coordinator.group.GroupMetadataManager"
    )
    for kind, text in broker.items():
        cases = _when(cases, kind, _text(prefix, text, f" ({logger})"))
    assert cases is not None
    return _text("[", F.date_format("at", "yyyy-MM-dd HH:mm:ss,SSS"), "] INFO ", cases)


_ABSTRACT, _CONSUMER = "AbstractCoordinator", "ConsumerCoordinator"


def _plan() -> Column:
    """``member=Assignment(partitions=[t-0, t-1]), ...``"""
    members = F.array_distinct(F.transform("plan", lambda one: one["member"]))

    def of(member: Column) -> Column:
        mine = F.transform(F.filter("plan", lambda one: one["member"] == member), lambda one: one["col2"])
        return _text(member, "=Assignment(partitions=[", F.array_join(mine, ", "), "])")

    return F.array_join(F.transform(members, of), ", ")


def _when(cases: Column | None, kind: Kind, text: Column) -> Column:
    ours = F.col("kind") == kind
    return F.when(ours, text) if cases is None else cases.when(ours, text)


def _text(*parts: Column | str) -> Column:
    """Put together; null when a part is."""
    return F.concat(*(F.lit(part) if isinstance(part, str) else part for part in parts))
