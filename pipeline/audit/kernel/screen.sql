-- Each change of ownership with the one before it in its partition, in one reading of the events.
--
-- Almost every partition of almost every log is in order: a consumer is assigned what the last owner gave away.
-- So everything is first narrowed down to the partitions about which there is something to say (`candidates`).
-- Names become numbers, since strings would be compared again and again; two of n partitions have the same one
-- with probability n^2 / 2^65, and are then looked at for nothing. At one instant what ends goes before what begins.

CREATE TEMP TABLE screened AS
WITH changes AS (
    SELECT
        hash("group", topic, partition) AS key,
        hash("group") AS family,
        -- One number to sort by: the time, and in its last bit what begins after what ends.
        2 * moment + (kind = 'assigned')::BIGINT AS time,
        hash(consumer) AS consumer,
        -- Up to which generation it had it. Without a number it gives away what it had before its first.
        CASE kind
            WHEN 'revoked' THEN coalesce(generation, -2147483648)
            WHEN 'lost' THEN coalesce(generation, 2147483647)
            ELSE 2147483647
        END AS held,
        generation
    FROM timed
    -- A callback without partitions changes nothing.
    WHERE kind IN ('assigned', 'revoked', 'lost') AND partition IS NOT NULL
),
neighbours AS (
    SELECT
        *,
        lag(time) OVER in_order AS time_before,
        lag(consumer) OVER in_order AS consumer_before,
        lag(generation) OVER in_order AS revoked_in,
        lead(time) OVER in_order IS NULL AS last
    FROM changes
    WINDOW in_order AS (PARTITION BY key ORDER BY time, consumer, generation)
),
compared AS (
    SELECT
        *,
        time & 1 = 1 AS begins,
        time_before & 1 = 1 AS began_before,
        consumer = consumer_before AS same,
        (time >> 1) - (time_before >> 1) AS apart
    FROM neighbours
),
judged AS (
    SELECT
        key, family, consumer, generation, revoked_in, held, last, begins,
        time >> 1 AS moment,
        CASE WHEN begins AND NOT began_before THEN apart END AS pause,
        coalesce(begins AND NOT began_before AND NOT same, false) AS moved,
        -- It does not follow from the one before.
        coalesce(
            (begins AND began_before)
            OR (NOT begins AND NOT (began_before AND same))
            OR (begins AND NOT began_before AND NOT same AND generation <= revoked_in)
            OR (begins AND NOT began_before AND same AND apart = 0),
            false
        ) AS odd
    FROM compared
)
SELECT *
FROM judged
-- What was kept over several generations may have been given to another in one of them.
WHERE pause IS NOT NULL OR odd OR last OR (NOT begins AND coalesce(revoked_in < held, true));

-- Whom leaders gave what, as far as they log it.
CREATE TEMP TABLE plans AS
SELECT
    hash("group", topic, partition) AS key, "group", topic, partition, generation, member,
    min(location(moment, kind, consumer, generation, file, line)) AS location
FROM timed
-- Not the target of a coordinator: the consumer protocol gives a partition away before it is given back.
WHERE kind = 'planned' AND partition IS NOT NULL AND generation IS NOT NULL AND member IS NOT NULL
    AND consumer IS NOT NULL
GROUP BY ALL;

CREATE TEMP TABLE candidates AS
SELECT key FROM screened WHERE odd OR pause >= least(getvariable('stranded'), getvariable('pause'))
UNION
-- Moved between two generations around which nothing changed.
SELECT key
FROM screened
JOIN (SELECT hash("group") AS family, generation, era AS era_to FROM generations) USING (family, generation)
JOIN (SELECT hash("group") AS family, generation AS revoked_in, era AS era_from FROM generations)
    USING (family, revoked_in)
WHERE moved AND era_from = era_to
UNION
-- Given away, and nobody took it while the group was at rest for long.
SELECT screened.key
FROM screened
JOIN (SELECT hash("group") AS family, since, until FROM lulls WHERE alive) AS calm USING (family)
WHERE last AND NOT begins AND until - greatest(since, moment) >= getvariable('stranded')
UNION
-- Owned by a consumer that the group went on without, or that closed or started again.
SELECT key
FROM screened
SEMI JOIN (SELECT hash("group") AS family, hash(consumer) AS consumer FROM vanished) USING (family, consumer)
WHERE last AND begins
UNION
SELECT key
FROM screened
JOIN (
    SELECT hash("group") AS family, hash(consumer) AS consumer, max(moment) AS turned
    FROM turns
    GROUP BY "group", consumer
) USING (family, consumer)
WHERE last AND begins AND turned > screened.moment
UNION
-- Given by a plan to a member while another may have had it: it gave it away in that generation, or still has it.
SELECT key
FROM plans
JOIN (
    SELECT hash("group", topic, partition) AS key, generation, member AS other
    FROM timed
    WHERE kind = 'revoked' AND partition IS NOT NULL
) USING (key, generation)
WHERE member IS DISTINCT FROM other
UNION
-- Or a plan after the grant gives it to another member of a generation in which its owner is one.
SELECT intervals.key
FROM (
    SELECT
        key, consumer, held,
        coalesce(CASE WHEN begins THEN generation ELSE revoked_in END, -2147483648) AS granted
    FROM screened
    WHERE CASE WHEN begins THEN last ELSE coalesce(revoked_in < held, true) END
) AS intervals
JOIN plans ON plans.key = intervals.key AND plans.generation > granted AND plans.generation <= held
JOIN participants
    ON participants."group" = plans."group" AND participants.generation = plans.generation
    AND hash(participants.consumer) = intervals.consumer
WHERE participants.member <> plans.member;
