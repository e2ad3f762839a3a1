-- What there is of partitions in each group, and how long they were with nobody when they changed hands, how often.

CREATE TEMP TABLE parts AS
SELECT "group", count(*) AS partitions
FROM screened
JOIN (SELECT DISTINCT "group", hash("group") AS family FROM consumers) USING (family)
WHERE last
GROUP BY "group";

CREATE TEMP TABLE waits AS
SELECT "group", pause, count(*) AS handovers
FROM screened
JOIN (SELECT DISTINCT "group", hash("group") AS family FROM consumers) USING (family)
WHERE pause IS NOT NULL
GROUP BY "group", pause;
