-- By how much the clocks of hosts are apart. First who can be compared; then round by round (`compared.sql`) each host
-- with those that are known; then one time line for each group (`shifts.sql`).

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
FROM joined
QUALIFY count(*) OVER (PARTITION BY "group", generation) > 1;

-- By how much each host is ahead of the one in its group with the most samples, as far as that is known by now.
CREATE TEMP TABLE reckoned AS
SELECT "group", min_by(host, {samples: -samples, host: host}) AS host, 0::BIGINT AS ahead
FROM (SELECT "group", host, count(*) AS samples FROM samples GROUP BY "group", host)
GROUP BY "group";
