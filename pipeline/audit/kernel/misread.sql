-- A line that is not understood may be the one that says otherwise: that a partition was given away or taken, that a
-- member joined, that the rebalance ended. It counts in the time of a finding, and in the rebalance before that. Where its
-- group is not known it counts in its file, and for whatever is found because no line says that it was not so.
CREATE TEMP TABLE unclear AS
WITH each AS (
    SELECT
        unnest(CASE WHEN "group" IS NULL THEN ['in ' || file, 'anywhere'] ELSE ['of ' || "group"] END) AS where_it_is,
        "at", regexp_replace(file, '^.*/', '') || ':' || line AS line
    FROM malformed
)
SELECT where_it_is, "at", min(line) AS line FROM each GROUP BY ALL;

CREATE TEMP TABLE bearing AS
SELECT
    id,
    epoch_us(places[1]."at") - getvariable('stranded') AS since,
    coalesce(epoch_us(ended), getvariable('end')) AS until,
    unnest(list_distinct(
        ['of ' || "group", CASE WHEN "check" IN ('stranded', 'never-settles', 'long-pause') THEN 'anywhere' END]
        || ['in ' || place.file FOR place IN places]
    )) AS where_it_is
FROM findings
WHERE certain AND "check" <> 'rebalance-storm';

UPDATE findings
SET
    certain = false,
    doubt = coalesce(doubt, misread.line || ' begins like a line of a client, and is not understood')
FROM (
    SELECT id, min(line) AS line
    FROM (
        SELECT id, line
        FROM bearing
        ASOF JOIN unclear ON unclear.where_it_is = bearing.where_it_is AND bearing.until >= unclear."at"
        WHERE unclear."at" >= since
        UNION ALL
        SELECT id, line FROM bearing JOIN unclear USING (where_it_is) WHERE "at" IS NULL
    )
    GROUP BY id
) AS misread
WHERE findings.id = misread.id;
