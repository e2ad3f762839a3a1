-- Hosts that joined generations with hosts that are reckoned with: by how much they are ahead of these. The middle, since who
-- does not poll notes late that it has joined.
INSERT INTO reckoned
WITH told AS (
    SELECT "group", generation, median(moment - ahead) AS moment
    FROM samples
    JOIN reckoned USING ("group", host)
    GROUP BY "group", generation
)
SELECT "group", host, median(samples.moment - told.moment)::BIGINT AS ahead
FROM samples
JOIN told USING ("group", generation)
ANTI JOIN reckoned USING ("group", host)
GROUP BY "group", host;
