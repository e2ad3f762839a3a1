-- `timed`: the events on one time line, without what is known of wrong clocks. The log as a whole ends by the clock that
-- is ahead of the others.
SET VARIABLE ahead = (
    SELECT map(list("group"), list(ahead))
    FROM (SELECT "group", max(shift) AS ahead FROM shifts WHERE shift > 0 GROUP BY "group")
);
CREATE OR REPLACE TEMP VIEW timed AS
SELECT events.* REPLACE (events.moment - coalesce(shift, 0) AS moment, heard - coalesce(shift, 0) AS heard)
FROM events
LEFT JOIN shifts ON shifts."group" = events."group" AND shifts.host = coalesce(events.host, events.consumer);
