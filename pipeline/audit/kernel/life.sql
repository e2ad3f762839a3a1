-- The life of each group as a whole: its consumers, its generations, and when nothing happened.

-- Where a consumer starts or closes: it owns nothing any more. At one instant in the order of its log.
CREATE TEMP TABLE turns AS
SELECT
    "group", consumer, moment,
    min_by(location(moment, kind, consumer, generation, file, line), {file: file, line: line}) AS location
FROM events
WHERE kind IN ('started', 'closed')
GROUP BY "group", consumer, moment;

-- Who was a member in which generation, and since when it knew its assignment, where that is logged.
CREATE TEMP TABLE participants AS
SELECT
    "group", generation, consumer,
    max(member) AS member,
    min(moment) AS moment,
    max(moment) FILTER (kind = 'synced') AS synced
FROM events
WHERE kind IN ('joined', 'synced') AND generation IS NOT NULL AND consumer IS NOT NULL
GROUP BY "group", generation, consumer;

-- Each generation: `began` with its first member. `era` counts how often the members or their subscriptions had
-- changed until then, `changed` says whether they did with this one. A member id is a new one when a process has
-- started again; before the first generation in the log there may have been anything. Whose log is not at hand is
-- known by the leader's plan: `planned` says that there is one.
CREATE TEMP TABLE generations AS
WITH plans AS (
    SELECT "group", generation, bit_xor(hash(member)) AS plan
    FROM (SELECT DISTINCT "group", generation, member FROM events WHERE kind = 'planned' AND generation IS NOT NULL)
    GROUP BY "group", generation
),
each AS (
    SELECT
        "group", generation,
        min(moment) AS moment,
        bit_xor(hash(consumer, coalesce(member, ''))) AS who
    FROM participants
    GROUP BY "group", generation
),
compared AS (
    SELECT
        "group", generation, moment, plan,
        coalesce(who <> lag(who) OVER in_order, true)
            OR coalesce(plan <> last_value(plan IGNORE NULLS) OVER former, false) AS changed
    FROM each
    LEFT JOIN plans USING ("group", generation)
    WINDOW
        in_order AS (PARTITION BY "group" ORDER BY moment, generation),
        former AS (
            PARTITION BY "group" ORDER BY moment, generation ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
changes AS (
    SELECT "group", generation, moment, changed, plan IS NOT NULL AS planned FROM compared
    UNION ALL
    SELECT "group", NULL, moment, true, false FROM events WHERE kind IN ('subscribed', 'started')
),
counted AS (
    SELECT
        "group", generation, moment AS began, changed, planned,
        sum(changed::INT) OVER (
            PARTITION BY "group" ORDER BY moment, generation ROWS UNBOUNDED PRECEDING
        )::BIGINT AS era
    FROM changes
)
SELECT * FROM counted WHERE generation IS NOT NULL;

-- Consumers that were no member of some later generation, and never came back.
CREATE TEMP TABLE vanished AS
SELECT "group", consumer, gone
FROM (SELECT "group", consumer, max(generation) AS generation FROM participants GROUP BY "group", consumer)
JOIN (
    SELECT "group", generation, lead(began) OVER (PARTITION BY "group" ORDER BY generation) AS gone
    FROM generations
) USING ("group", generation)
WHERE gone IS NOT NULL;

-- What happened to each group as a group, in order.
CREATE TEMP TABLE stirs AS
SELECT
    "group", moment, kind, consumer, generation, file, line,
    lag(moment) OVER in_order AS before,
    lead(moment) OVER in_order AS after
FROM events
WHERE kind IN (
    'started', 'joining', 'joined', 'synced', 'reset', 'leaving', 'closed',
    'preparing', 'stable', 'removed', 'empty'
)
WINDOW in_order AS (PARTITION BY "group" ORDER BY moment, generation, kind, consumer, file, line);

-- The times in which nothing happened to a group, up to the end of the log: `gone`, without members; `alive`, with
-- members and no rebalance under way.
CREATE TEMP TABLE lulls AS
SELECT
    "group",
    moment AS since,
    coalesce(after, getvariable('end')) AS until,
    kind IN ('leaving', 'closed', 'empty', 'removed') AS gone,
    kind NOT IN ('leaving', 'closed', 'empty', 'removed', 'joining', 'preparing') AS alive
FROM stirs
WHERE coalesce(after, getvariable('end')) - moment >= getvariable('stranded');

-- Runs of generations of which any `storm` came within `storm_within`.
CREATE TEMP TABLE storms AS
WITH dense AS (
    SELECT
        *,
        coalesce(
            began - lag(began, getvariable('storm') - 1) OVER in_order <= getvariable('storm_within'), false
        ) AS dense
    FROM generations
    WINDOW in_order AS (PARTITION BY "group" ORDER BY began, generation)
),
marked AS (
    -- A generation is in a storm when one of the next completes a dense run.
    SELECT
        *,
        bool_or(dense) OVER (
            PARTITION BY "group" ORDER BY began, generation
            ROWS BETWEEN CURRENT ROW AND getvariable('storm') - 1 FOLLOWING
        ) AS within
    FROM dense
),
begun AS (
    SELECT *, within AND NOT coalesce(lag(within) OVER in_order, false) AS begins
    FROM marked
    WINDOW in_order AS (PARTITION BY "group" ORDER BY began, generation)
),
numbered AS (
    SELECT *, sum(begins::INT) OVER (PARTITION BY "group" ORDER BY began, generation ROWS UNBOUNDED PRECEDING) AS storm
    FROM begun
)
SELECT
    "group",
    min(began) AS since,
    max(began) AS until,
    count(*) AS count,
    count_if(changed) AS changes
FROM numbered
WHERE within
GROUP BY "group", storm;

-- Groups whose last rebalance had not ended when the log did. Either nothing at all happened for `settle` after a
-- rebalance began (`waiting`), or one came after the other, never so long apart, for that long and until the end,
-- although nobody came or went: after a change of members the first generation is due to it, and the one that
-- follows it. Where no leader's log says whom it planned for, others may have come and gone, and it is not certain.
CREATE TEMP TABLE unsettled AS
WITH begun AS (
    SELECT "group", max(moment) FILTER (coalesce(moment - before >= getvariable('settle'), true)) AS since
    FROM stirs
    GROUP BY "group"
),
-- JOINED is one more of those that are under way, unless nobody logs SYNCED.
syncing AS (SELECT "group", bool_or(kind = 'synced') AS syncs FROM stirs GROUP BY "group"),
final AS (
    SELECT
        "group",
        since,
        min(location(moment, kind, consumer, generation, file, line)) AS first,
        max(location(moment, kind, consumer, generation, file, line)) AS last
    FROM stirs
    JOIN begun USING ("group")
    WHERE moment >= since
    GROUP BY "group", since
),
causeless AS (
    SELECT "group", count(*) AS generations, bool_and(planned) AS planned
    FROM (
        SELECT *, era = lag(era, 2) OVER (PARTITION BY "group" ORDER BY began, generation) AS causeless
        FROM generations
    )
    JOIN final USING ("group")
    WHERE causeless AND began >= since
    GROUP BY "group"
),
judged AS (
    SELECT
        "group", since, first, last,
        coalesce(generations, 0) AS generations,
        coalesce(planned, false) AS planned,
        getvariable('end') - last.moment AS quiet,
        (last.kind IN ('joining', 'preparing') OR (last.kind = 'joined' AND syncs))
            AND quiet >= getvariable('settle') AS waiting
    FROM final
    JOIN syncing USING ("group")
    LEFT JOIN causeless USING ("group")
)
SELECT "group", since, first, last, generations, waiting, waiting OR planned AS certain
FROM judged
WHERE waiting
    OR (quiet < getvariable('settle') AND getvariable('end') - since >= getvariable('settle') AND generations > 1);

-- What each consumer subscribed to when.
CREATE TEMP TABLE subscriptions AS
SELECT "group", consumer, moment, list(DISTINCT topic) AS topics
FROM events
WHERE kind = 'subscribed'
GROUP BY "group", consumer, moment;
