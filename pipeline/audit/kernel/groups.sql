-- What is to be said of a group as a whole: storms, rebalances that do not end, its figures, and what it shows of
-- the clocks of hosts.

INSERT INTO found BY NAME
WITH stormy AS (
    SELECT
        "group", since, until, count, changes, seen,
        NULL::VARCHAR AS topic,
        NULL::INTEGER AS partition,
        min_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS first,
        max_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS last
    FROM storms
    JOIN stirs USING ("group")
    WHERE kind IN ('joined', 'stable') AND moment BETWEEN since AND until
    GROUP BY "group", since, until, count, changes, seen
)
SELECT
    finding_id('rebalance-storm', stormy, [first]) AS id,
    'rebalance-storm' AS "check",
    "group",
    since AS began,
    until AS ended,
    until - since AS lasted,
    [] AS consumers,
    [] AS members,
    [] AS generations,
    true AS certain,
    list_sort([first, last]) AS places,
    format(
        '{} generations, any {} of them within {} s',
        count, getvariable('storm'), getvariable('storm_within_text')
    )
    -- A broker does not say who the members are.
    || CASE WHEN seen THEN '; the members or subscriptions changed with ' || changes ELSE '' END AS detail
FROM stormy;

INSERT INTO found BY NAME
WITH leaders AS (SELECT "group", max_by(consumer, moment) AS leader FROM timed WHERE kind = 'planned' GROUP BY "group"),
restless AS (
    SELECT unsettled.*, leader, NULL::VARCHAR AS topic, NULL::INTEGER AS partition
    FROM unsettled
    LEFT JOIN leaders USING ("group")
)
SELECT
    finding_id('never-settles', restless, [first]) AS id,
    'never-settles' AS "check",
    "group",
    since AS began,
    end_of("group") - since AS lasted,
    [] AS consumers,
    [] AS members,
    [] AS generations,
    certain,
    CASE
        WHEN spoken.until < since + getvariable('settle') AND NOT at_once
            THEN 'the logs of this group end in the middle of it'
        WHEN waiting AND crooked.host IS NOT NULL
            THEN 'the clock of ' || crooked.host || ' is far off, and too little is known of it to put it right'
        WHEN certain THEN NULL
        WHEN waiting AND "group" IN (SELECT "group" FROM epochal)
            THEN 'members of the consumer protocol do not log that a rebalance has ended'
        WHEN rests THEN 'since the last of them it was quiet for longer than they were apart'
        WHEN waiting THEN 'two files tie at the instant of the last rebalance'
        ELSE 'these logs do not tell who came and went'
    END AS doubt,
    written([first, given.first, last]) AS places,
    CASE
        WHEN waiting THEN 'a rebalance began and did not end'
        ELSE format('{} generations for which nobody came or went, up to the end of the log', generations)
            || CASE WHEN certain OR rests THEN '' ELSE ', as far as these logs tell who the members are' END
            || coalesce(
                '; ' || given.consumer || ' was assigned partitions of ' || given.topic || ' in ' || given.generations
                || ' of them, and does not subscribe to it: the assignor of the leader'
                || coalesce(', ' || leader || ',', '') || ' gives what nobody asked for', ''
            )
    END AS detail
FROM restless
LEFT JOIN spoken USING ("group")
LEFT JOIN crooked USING ("group");

-- A member of the consumer protocol for which the others wait.
INSERT INTO found BY NAME
WITH one AS (
    SELECT stuck.*, NULL::VARCHAR AS topic, NULL::INTEGER AS partition FROM stuck ANTI JOIN unsettled USING ("group")
)
SELECT
    finding_id('never-settles', one, [location]) AS id,
    'never-settles' AS "check",
    "group",
    since AS began,
    end_of("group") - since AS lasted,
    [] AS consumers,
    [] AS members,
    [] AS generations,
    true AS certain,
    CASE
        WHEN heard - since < getvariable('settle')
            THEN 'no line follows of ' || CASE WHEN location.kind = 'granted' THEN 'that coordinator' ELSE who END
                || ' that would show that its log is not cut off there'
    END AS doubt,
    [location] AS places,
    'the coordinator assigned ' || who || ' other partitions, and it never acknowledged that' AS detail
FROM one;

-- Rebalances that took long by the log of the coordinator, which knows no partitions.
INSERT INTO found BY NAME
WITH turns AS (
    SELECT
        "group", kind, moment,
        location(moment, kind, consumer, generation, file, line) AS here,
        lead(kind) OVER in_order AS next,
        lead(location(moment, kind, consumer, generation, file, line)) OVER in_order AS stop
    FROM timed
    WHERE kind IN ('preparing', 'stable', 'empty') AND protocol IS DISTINCT FROM 'consumer'
    WINDOW in_order AS (PARTITION BY "group" ORDER BY moment, file, line)
),
slow AS (
    SELECT *, NULL::VARCHAR AS topic, NULL::INTEGER AS partition
    FROM turns
    WHERE kind = 'preparing' AND next = 'stable' AND stop.moment - moment >= getvariable('pause')
)
SELECT
    finding_id('long-pause', slow, [here]) AS id,
    'long-pause' AS "check",
    "group",
    moment AS began,
    stop.moment AS ended,
    stop.moment - moment AS lasted,
    [] AS consumers,
    [] AS members,
    [] AS generations,
    true AS certain,
    [here, stop] AS places,
    'the coordinator had begun a rebalance, and completed it so much later' AS detail
FROM slow;

CREATE TEMP TABLE lives AS
SELECT
    "group",
    count(consumer) AS consumers,
    sum(events)::BIGINT AS events,
    count_if(synced = 1 AND owns = 0) AS silent,
    coalesce(any_value(rebalances), 0) AS rebalances,
    any_value(most.members) AS members,
    coalesce(any_value(most.missing), 0) AS missing,
    min(first) AS first,
    max(last) AS last,
    "group" NOT IN (SELECT "group" FROM unsettled UNION ALL SELECT "group" FROM stuck) AS settled
FROM consumers
LEFT JOIN (SELECT "group", count(*) AS rebalances FROM generations GROUP BY "group") USING ("group")
LEFT JOIN unlogged USING ("group")
GROUP BY "group";
