-- Each consumer in the log, and null for the coordinator. `synced`: it is a member, and its client logs with each
-- generation which partitions it is given, none too; `owns`: such a line is there. Java's members of the consumer protocol
-- always log what they give away, and what they are given only where they have a rebalance listener.
CREATE TEMP TABLE consumers AS
SELECT "group", consumer, count(*) AS events, min(moment) AS first, max(moment) AS last,
    max((kind = 'synced' AND source IN ('java', 'python', 'kgo', 'kafka-go', 'kafkajs', 'connect'))::INT) AS synced,
    max(
        (kind = 'assigned' OR (kind IN ('revoked', 'lost') AND protocol IS DISTINCT FROM 'consumer'))::INT
    ) AS owns,
    -- A log that breaks off: something follows what a consumer gives away.
    max(moment) FILTER (kind = 'revoked' AND source IN ('java', 'python', 'librdkafka')) AS taken,
    max(moment) FILTER (kind <> 'revoked') AS besides
FROM timed
GROUP BY "group", consumer;
