-- What is to be said of a group as a whole: storms, rebalances that do not end, its figures, and what it shows of
-- the clocks of hosts.

INSERT INTO found BY NAME
WITH stormy AS (
    SELECT
        "group", since, until, count, changes,
        NULL::VARCHAR AS topic,
        NULL::INTEGER AS partition,
        min(location(moment, kind, consumer, generation, file, line)) AS first,
        max(location(moment, kind, consumer, generation, file, line)) AS last
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
WITH restless AS (SELECT *, NULL::VARCHAR AS topic, NULL::INTEGER AS partition FROM unsettled)
SELECT
    finding_id('never-settles', restless, [first]) AS id,
    'never-settles' AS "check",
    "group",
    since AS began,
    getvariable('end') - since AS lasted,
    [] AS consumers,
    [] AS members,
    [] AS generations,
    certain,
    [first, last] AS places,
    CASE
        WHEN waiting THEN 'a rebalance began and did not end'
        ELSE format('{} generations for which nobody came or went, up to the end of the log', generations)
            || CASE WHEN certain THEN '' ELSE ', as far as these logs tell who the members are' END
    END AS detail
FROM restless;

CREATE TEMP TABLE lives AS
SELECT
    "group",
    count(consumer) AS consumers,
    sum(events)::BIGINT AS events,
    coalesce(any_value(rebalances), 0) AS rebalances,
    min(first) AS first,
    max(last) AS last,
    "group" NOT IN (SELECT "group" FROM unsettled) AS settled
FROM consumers
LEFT JOIN (SELECT "group", count(*) AS rebalances FROM generations GROUP BY "group") USING ("group")
GROUP BY "group";

-- The coordinator answers all members of a generation at one moment, so they note at one moment that they have
-- joined it, up to the time that an answer travels. By how much each host was off the middle of them, how often.
CREATE TEMP TABLE offsets AS
WITH joined AS (
    SELECT "group", generation, coalesce(host, consumer) AS host, min(moment) AS moment
    FROM events
    WHERE kind = 'joined' AND consumer IS NOT NULL AND generation IS NOT NULL
    GROUP BY ALL
),
compared AS (
    SELECT
        host,
        moment - median(moment) OVER (PARTITION BY "group", generation) AS apart,
        count(*) OVER (PARTITION BY "group", generation) AS hosts
    FROM joined
)
SELECT host, apart, count(*) AS samples FROM compared WHERE hosts > 1 GROUP BY host, apart;
