-- Each consumer in the log, and null for the coordinator.
CREATE TEMP TABLE consumers AS
SELECT "group", consumer, count(*) AS events, min(moment) AS first, max(moment) AS last
FROM events
GROUP BY "group", consumer;
