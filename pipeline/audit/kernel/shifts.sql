-- By how much each host was off the middle of the known clocks of its group, how often.
CREATE TEMP TABLE readings AS
WITH middle AS (SELECT "group", median(ahead) AS middle FROM reckoned GROUP BY "group")
SELECT
    "group", host,
    moment - median(moment - ahead) OVER (PARTITION BY "group", generation) AS ahead,
    middle
FROM samples
JOIN reckoned USING ("group", host)
JOIN middle USING ("group");

CREATE TEMP TABLE offsets AS
SELECT host, ahead - middle AS apart, count(*) AS samples FROM readings GROUP BY host, apart;

-- Hosts whose clock is far off that of the host with the most samples in their group, each time by the same; by no
-- more than who knows them says.
CREATE TEMP TABLE shifts AS
SELECT "group", host, median(ahead)::BIGINT AS shift
FROM readings
GROUP BY "group", host
HAVING count(*) > 1
    AND max(ahead) - min(ahead) <= getvariable('unknown_skew') * 1e6
    AND abs(median(ahead)) > 2 * getvariable('unknown_skew') * 1e6
    AND coalesce(abs(median(ahead)) <= getvariable('clock_skew') * 1e6, true);

-- Groups of which a clock is as far off by what is known of it, and not put right: that is known of one generation only,
-- or not each time by the same. In which order things happened there, nobody knows.
CREATE TEMP TABLE crooked AS
SELECT "group", min(host) AS host
FROM readings
ANTI JOIN shifts USING ("group", host)
WHERE abs(ahead) > 2 * getvariable('unknown_skew') * 1e6
GROUP BY "group";
