-- Who owned which partition from when to when, of the partitions in `candidates`, and which neighbours meet.

-- One row for each interval. It ends at the latest where its consumer closes or starts again, and when the group
-- went on without it. One that began before the log of its consumer did (`earlier`) has its first line for `began`, no
-- `start` and no `granted`. A member of the consumer protocol that joins had nothing before: what it gives away and no line
-- gave it, as Java's do without a rebalance listener, it had then, nobody knows since when.
-- `stop` and `finish` (the kind of event) are null where it does not end in this log; `held` is the last generation of
-- the consumer then.
CREATE TEMP TABLE owned AS
WITH chosen AS (
    SELECT
        "group", topic, partition, consumer, member, coalesce(host, consumer) AS host, generation, moment,
        kind = 'assigned' AS begins,
        location(moment, kind, consumer, generation, file, line) AS here,
        file, line
    FROM timed
    WHERE kind IN ('assigned', 'revoked', 'lost') AND partition IS NOT NULL
        AND hash("group", topic, partition) IN (SELECT key FROM candidates)
),
-- At one instant a consumer's events are in the order of its log.
followed AS (
    SELECT *, lead(here) OVER own AS following, lag(moment) OVER own IS NULL AS none_before
    FROM chosen
    WINDOW own AS (PARTITION BY "group", topic, partition, consumer ORDER BY moment, file, line)
),
lasting AS (
    SELECT
        followed.*,
        CASE WHEN begins THEN following ELSE here END AS next,
        NOT begins AND coalesce(entered.moment >= followed.moment, true) AS earlier,
        CASE WHEN earlier THEN first ELSE followed.moment END AS began
    FROM followed
    LEFT JOIN consumers USING ("group", consumer)
    LEFT JOIN entered USING ("group", consumer)
    WHERE begins OR none_before
),
-- With the end of this life of its consumer.
lived AS (
    SELECT
        lasting.*,
        CASE WHEN next IS NULL OR turns.moment < next.moment THEN turns.location ELSE next END AS stop
    FROM lasting
    ASOF LEFT JOIN turns
        ON lasting."group" = turns."group" AND lasting.consumer = turns.consumer AND lasting.began < turns.moment
),
ended AS (
    SELECT
        "group", topic, partition, lived.consumer, member, host,
        CASE WHEN begins THEN generation END AS granted,
        earlier,
        began,
        coalesce(stop.moment, CASE WHEN gone IS NOT NULL THEN greatest(gone, began) END) AS ended,
        stop.kind AS finish,
        stop.generation AS held,
        CASE WHEN begins THEN here END AS start,
        stop
    FROM lived
    LEFT JOIN vanished USING ("group", consumer)
)
SELECT
    *,
    hash("group", topic, partition) AS key,
    row_number() OVER (
        PARTITION BY "group", topic, partition
        ORDER BY began, granted, consumer, start.file, start.line, stop.moment
    ) AS number
FROM ended;

-- Each interval as `b` with those of the same partition that began before it as `a`, the nearest three: what lasts
-- longer than so many owners has met the first of them. `next`: nothing began in between.
CREATE TEMP TABLE meetings AS
SELECT b."group", b.topic, b.partition, a, b, back = 1 AS next
FROM owned AS b
CROSS JOIN (SELECT unnest([1, 2, 3]) AS back)
JOIN owned AS a ON a.key = b.key AND a.number = b.number - back
    AND a."group" = b."group" AND a.topic = b.topic AND a.partition = b.partition;

-- The times in which nobody owned a partition: `a` is the last owner's interval, `b` the next, null where there is
-- none until the end of the log.
CREATE TEMP TABLE gaps AS
WITH reaching AS (
    SELECT
        *,
        max({moment: coalesce(ended, 9223372036854775807), consumer: coalesce(consumer, ''), number: number}) OVER (
            PARTITION BY "group", topic, partition ORDER BY number ROWS UNBOUNDED PRECEDING
        ) AS reach
    FROM owned
)
SELECT
    here."group", here.topic, here.partition, a,
    CASE WHEN b.key IS NOT NULL THEN b END AS b,
    here.reach.moment AS since,
    coalesce(b.began, end_of(here."group")) AS until
FROM reaching AS here
JOIN owned AS a ON a.key = here.key AND a.number = here.reach.number
    AND a."group" = here."group" AND a.topic = here.topic AND a.partition = here.partition
LEFT JOIN owned AS b ON b.key = here.key AND b.number = here.number + 1
    AND b."group" = here."group" AND b.topic = here.topic AND b.partition = here.partition
WHERE here.reach.moment < coalesce(b.began, end_of(here."group"))
    -- Whose log begins with giving it away has had it, nobody knows since when.
    AND (b.key IS NULL OR b.start IS NOT NULL);
