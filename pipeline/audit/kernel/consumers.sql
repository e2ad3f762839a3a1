-- Each consumer in the log, and null for the coordinator. `synced`: it is a member, and its client logs with each
-- generation which partitions it is given, none too; `owns`: such a line is there.
CREATE TEMP TABLE consumers AS
SELECT "group", consumer, count(*) AS events, min(moment) AS first, max(moment) AS last,
    max((kind = 'synced' AND source IN ('java', 'python'))::INT) AS synced,
    max((kind IN ('assigned', 'revoked', 'lost'))::INT) AS owns
FROM timed
GROUP BY "group", consumer;
