-- By how much the clocks of hosts are apart, and one time line for each group.

-- The coordinator answers all members of a generation at one moment, so they note at one moment that they have
-- joined it, up to the time that an answer travels. Not so the epochs of the consumer protocol, nor the first join of a
-- static member, which is let into the generation that stands.
CREATE TEMP TABLE samples AS
WITH turns AS (
    SELECT
        "group", generation, consumer, coalesce(host, consumer) AS host, moment, kind, instance, protocol,
        lag(kind) OVER (PARTITION BY "group", consumer ORDER BY moment, file, line) = 'joined' AS again
    FROM events
    WHERE kind IN ('joined', 'started', 'closed') AND consumer IS NOT NULL
),
joined AS (
    SELECT "group", generation, host, min(moment) AS moment
    FROM turns
    WHERE kind = 'joined' AND generation IS NOT NULL
        AND protocol IS DISTINCT FROM 'consumer'
        AND (instance IS NULL OR coalesce(again, false))
    GROUP BY ALL
)
SELECT
    "group", host,
    moment - median(moment) OVER (PARTITION BY "group", generation) AS apart,
    count(*) OVER (PARTITION BY "group", generation) AS hosts
FROM joined;

-- By how much each host was off the middle of them, how often.
CREATE TEMP TABLE offsets AS
SELECT host, apart, count(*) AS samples FROM samples WHERE hosts > 1 GROUP BY host, apart;

-- Hosts whose clock is far off that of the host with the most samples in their group, each time by the same.
CREATE TEMP TABLE shifts AS
WITH each AS (
    SELECT "group", host, median(apart) AS ahead, count(*) AS samples, max(apart) - min(apart) AS width
    FROM samples
    WHERE hosts > 1
    GROUP BY "group", host
),
anchors AS (
    SELECT "group", min_by(ahead, {samples: -samples, host: host}) AS anchor, min_by(width, {samples: -samples, host: host}) AS width
    FROM each
    GROUP BY "group"
)
SELECT "group", host, (ahead - anchor)::BIGINT AS shift
FROM each
JOIN anchors USING ("group")
WHERE samples > 1
    AND greatest(each.width, anchors.width) <= getvariable('unknown_skew') * 1e6
    AND abs(ahead - anchor) > 2 * getvariable('unknown_skew') * 1e6;
