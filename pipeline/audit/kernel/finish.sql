-- From what was found bucket by bucket to the tables of the audit: what takes all groups together.

-- Each host with `ahead` (seconds, of the others) and `spread`: in 95 of 100 generations it was not farther off than
-- that. Hosts that never joined with another are missing.
CREATE TEMP TABLE clocks AS
WITH each AS (
    SELECT host, unnest(list_resize([apart], samples::BIGINT, apart)) AS apart FROM offsets
),
middle AS (SELECT host, median(apart) AS ahead, count(*) AS samples FROM each GROUP BY host)
SELECT
    host,
    any_value(ahead) / 1e6 AS ahead,
    quantile_cont(abs(apart - ahead), 0.95) / 1e6 AS spread,
    any_value(samples) AS samples
FROM each
JOIN middle USING (host)
GROUP BY host;

CREATE TEMP TABLE findings AS
WITH skewed AS (
    SELECT
        found.*,
        CASE
            WHEN NOT coalesce(compared, false) THEN NULL
            WHEN host_a IS NOT DISTINCT FROM host_b THEN 0.0
            WHEN getvariable('clock_skew') IS NOT NULL THEN getvariable('clock_skew')
            ELSE coalesce(
                abs(a.ahead - b.ahead - coalesce(moved, 0) / 1e6) + a.spread + b.spread,
                getvariable('unknown_skew')
            )
        END AS skew
    FROM found
    LEFT JOIN clocks AS a ON a.host = host_a
    LEFT JOIN clocks AS b ON b.host = host_b
)
SELECT
    id, "check", level, "group", topic, partition,
    make_timestamptz(began) AS began,
    make_timestamptz(ended) AS ended,
    lasted / 1e6 AS seconds,
    consumers, members, generations,
    skew,
    doubt IS NULL AND (certain OR coalesce(lasted / 1e6 > skew, false)) AS certain,
    doubt,
    [
        struct_pack(
            "at" := make_timestamptz(one.moment), kind := one.kind, consumer := one.consumer,
            generation := one.generation, file := one.file, line := one.line
        ) FOR one IN list_sort(places)
    ] AS places,
    detail
FROM skewed
JOIN levels USING ("check");

CREATE TEMP TABLE groups AS
SELECT
    "group", consumers, coalesce(partitions, 0) AS partitions, events, rebalances, silent,
    members, missing,
    make_timestamptz(first) AS first, make_timestamp(last) AS last, settled
FROM lives
LEFT JOIN (SELECT "group", sum(partitions)::BIGINT AS partitions FROM parts GROUP BY "group") USING ("group");

CREATE TEMP TABLE pauses AS
WITH each AS (
    SELECT "group", pause, sum(handovers) AS handovers FROM waits GROUP BY "group", pause
),
ranked AS (
    SELECT
        *,
        sum(handovers) OVER (PARTITION BY "group" ORDER BY pause) AS up_to,
        sum(handovers) OVER (PARTITION BY "group") AS whole
    FROM each
)
SELECT
    "group",
    any_value(whole)::BIGINT AS handovers,
    min(pause) FILTER (up_to >= 0.5 * whole) / 1e6 AS p50,
    min(pause) FILTER (up_to >= 0.95 * whole) / 1e6 AS p95,
    max(pause) / 1e6 AS longest
FROM ranked
GROUP BY "group";
