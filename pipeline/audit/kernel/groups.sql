-- What is to be said of a group as a whole: storms, rebalances that do not end, its figures, and what it shows of
-- the clocks of hosts.

INSERT INTO found BY NAME
WITH stormy AS (
    SELECT
        "group", since, until, count, changes,
        NULL::VARCHAR AS topic,
        NULL::INTEGER AS partition,
        min_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS first,
        max_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS last
    FROM storms
    JOIN stirs USING ("group")
    WHERE kind IN ('joined', 'stable') AND moment BETWEEN since AND until
    GROUP BY "group", since, until, count, changes
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
        '{} generations, any {} of them within {} s; the members or subscriptions changed with {}',
        count, getvariable('storm'), getvariable('storm_within_text'), changes
    ) AS detail
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
        WHEN certain THEN NULL
        WHEN waiting AND "group" IN (SELECT "group" FROM epochal)
            THEN 'members of the consumer protocol do not log that a rebalance has ended'
        WHEN waiting THEN 'two files tie at the instant of the last rebalance'
        ELSE 'these logs do not tell who came and went'
    END AS doubt,
    written([first, given.first, last]) AS places,
    CASE
        WHEN waiting THEN 'a rebalance began and did not end'
        ELSE format('{} generations for which nobody came or went, up to the end of the log', generations)
            || CASE WHEN certain THEN '' ELSE ', as far as these logs tell who the members are' END
            || coalesce(
                '; ' || given.consumer || ' was assigned partitions of ' || given.topic || ' in ' || given.generations
                || ' of them, and does not subscribe to it: the assignor of the leader'
                || coalesce(', ' || leader || ',', '') || ' gives what nobody asked for', ''
            )
    END AS detail
FROM restless;

CREATE TEMP TABLE lives AS
SELECT
    "group",
    count(consumer) AS consumers,
    sum(events)::BIGINT AS events,
    count_if(synced = 1 AND owns = 0) AS silent,
    coalesce(any_value(rebalances), 0) AS rebalances,
    min(first) AS first,
    max(last) AS last,
    "group" NOT IN (SELECT "group" FROM unsettled) AS settled
FROM consumers
LEFT JOIN (SELECT "group", count(*) AS rebalances FROM generations GROUP BY "group") USING ("group")
GROUP BY "group";
