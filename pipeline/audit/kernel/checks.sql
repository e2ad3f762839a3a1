-- The checks, each adding rows to `found`. Whether clocks explain a contradiction is left to `finish.sql`, since the
-- clocks of hosts are known only when all groups have been seen: `host_a`, `host_b` are those that are compared.

-- Exclusivity is a statement about the members of a generation. So of two owners the one whose partition was granted
-- earlier counts as a member if it joined the generation of the later grant, or if the log does not say who did.
-- One that did not join had been removed; it is a zombie until it notices. Among members of the consumer protocol, whose
-- epochs are their own, it counts as a member if it was told that it is one, and was not told since that it was none:
-- who gives something away is one until then, and whose log goes on says which. A log that ends there says neither. So
-- it is where a client logs no generation: it gives away what it is told to while it is a member, and loses the rest.
INSERT INTO found BY NAME
WITH pairs AS (
    SELECT
        *,
        CASE WHEN coalesce(a.granted <= b.granted, true) THEN a ELSE b END AS older,
        greatest(a.granted, b.granted) AS generation,
        least(a.ended, b.ended) AS until,
        a.ended IS NULL OR a.ended > b.began AS overlap,
        -- Says the same without a clock: given away in the generation of the grant, or later. What was owned before
        -- the log begins was granted before what it tells of.
        coalesce(
            a.finish = 'revoked' AND a.held >= b.granted AND (a.granted < b.granted OR a.earlier), false
        ) AS proved
    FROM meetings
    -- Of one member there is one: a log that is there twice may tell of it in two time zones.
    WHERE a.consumer <> b.consumer AND coalesce(a.member <> b.member, true)
),
placed AS (
    SELECT
        row_number() OVER () AS pair, pairs.*, older.consumer AS elder, b.began AS "at",
        coalesce(epochal.since <= b.began, false) AS by_epoch,
        ua.consumer IS NOT NULL OR ub.consumer IS NOT NULL AS unnumbered
    FROM pairs
    LEFT JOIN epochal USING ("group")
    LEFT JOIN unnumbered AS ua ON ua."group" = pairs."group" AND ua.consumer = a.consumer
    LEFT JOIN unnumbered AS ub ON ub."group" = pairs."group" AND ub.consumer = b.consumer
    -- Of all others nothing is found.
    WHERE overlap OR (proved AND next)
),
-- What the older owner was told last by then, and first after that.
owners AS (SELECT DISTINCT "group", elder AS consumer FROM placed),
told_owners AS (SELECT * FROM told SEMI JOIN owners USING ("group", consumer)),
before AS (
    SELECT pair, kind
    FROM placed
    ASOF JOIN told_owners AS told
        ON told."group" = placed."group" AND told.consumer = placed.elder AND told.moment <= placed."at"
),
after AS (
    SELECT pair, kind, moment
    FROM placed
    ASOF JOIN told_owners AS told
        ON told."group" = placed."group" AND told.consumer = placed.elder AND told.moment > placed."at"
),
-- A member of a generation until it is removed from it.
removed AS (SELECT "group", consumer, min(moment) AS moment FROM told WHERE kind = 'removed' GROUP BY "group", consumer),
standing AS (
    SELECT
        placed.*,
        CASE
            WHEN NOT placed.by_epoch AND NOT unnumbered THEN
                CASE
                    WHEN known.generation IS NULL THEN 'member'
                    WHEN joined.consumer IS NULL THEN 'removed'
                    WHEN removed.moment BETWEEN joined.moment AND "at" THEN 'removed'
                    ELSE 'member'
                END
            WHEN coalesce(before.kind, 'joined') NOT IN ('joined', 'synced') THEN 'removed'
            WHEN older.finish = 'lost' OR (after.kind IN ('reset', 'removed') AND (older.ended > after.moment OR older.ended IS NULL)) THEN 'removed'
            WHEN unnumbered AND after.kind = 'reset' AND older.ended = after.moment THEN 'removed'
            WHEN unnumbered AND older.finish = 'closed' THEN 'late'
            WHEN unnumbered AND older.ended - "at" < getvariable('told_within') THEN 'lately'
            WHEN older.finish = 'revoked' OR after.kind IN ('joined', 'synced', 'leaving', 'closed') THEN 'member'
            WHEN after.kind IS NULL AND older.finish IS NULL THEN 'silent'
            ELSE 'removed'
        END AS elders
    FROM placed
    LEFT JOIN before USING (pair)
    LEFT JOIN after USING (pair)
    LEFT JOIN participants AS joined
        ON joined."group" = placed."group" AND joined.generation = placed.generation AND joined.consumer = elder
    LEFT JOIN (SELECT DISTINCT "group", generation FROM participants) AS known
        ON known."group" = placed."group" AND known.generation = placed.generation
    LEFT JOIN removed ON removed."group" = placed."group" AND removed.consumer = elder
),
-- Nothing compares the clocks of members of the consumer protocol, but that one learns of what has happened: by how much
-- at most the older owner's is ahead, where it was told last by then after somebody else came or went.
heard AS (
    SELECT pair, max(told.moment) AS moment
    FROM standing
    JOIN told ON told."group" = standing."group" AND told.consumer = elder
        AND told.kind IN ('joined', 'synced') AND told.moment <= coalesce(older.ended, 9223372036854775807)
    WHERE by_epoch AND overlap AND a.host <> b.host AND elders = 'member'
    GROUP BY pair
),
cause AS (
    SELECT pair, max(told.moment) AS moment
    FROM standing
    JOIN told ON told."group" = standing."group" AND told.host <> older.host
        AND told.kind IN ('joined', 'leaving', 'closed', 'removed') AND told.moment <= "at"
    WHERE by_epoch AND overlap AND a.host <> b.host AND elders = 'member'
    GROUP BY pair
),
judged AS (
    SELECT
        standing.* REPLACE (proved AND NOT by_epoch AS proved),
        CASE
            WHEN overlap AND elders <> 'removed' THEN 'owned-twice'
            WHEN proved AND NOT by_epoch AND next THEN 'granted-before-revoked'
            -- An interval that ends so was believed in by its consumer until then. A killed process did not.
            WHEN overlap AND older.finish IN ('revoked', 'lost', 'closed') THEN 'owned-by-zombie'
        END AS name,
        heard.moment - cause.moment AS slack
    FROM standing
    LEFT JOIN heard USING (pair)
    LEFT JOIN cause USING (pair)
)
SELECT
    finding_id(name, judged, written([a.start, b.start])) AS id,
    name AS "check",
    "group", topic, partition,
    CASE WHEN overlap THEN b.began ELSE a.ended END AS began,
    CASE WHEN overlap THEN until ELSE b.began END AS ended,
    CASE WHEN overlap THEN coalesce(until, end_of("group")) - b.began ELSE 0 END AS lasted,
    [a.consumer, b.consumer] AS consumers,
    [a.member, b.member] AS members,
    [a.granted, b.granted] AS generations,
    proved AS certain,
    CASE
        WHEN NOT overlap THEN NULL
        WHEN elders = 'silent' THEN 'the log of ' || elder || ' says nothing any more by then'
        WHEN elders = 'late' THEN 'the log of ' || elder || ' says only afterwards that it has stopped'
        WHEN elders = 'lately' THEN 'the log of ' || elder || ' does not tell whether it was a member still'
        WHEN overlap AND getvariable('clock_skew') IS NULL
            AND coalesce(until, end_of("group")) - b.began <= slack + getvariable('unknown_skew') * 1e6
            THEN 'the clock of ' || elder || ' may be ahead by as much, nothing in these logs compares it'
    END AS doubt,
    a.host AS host_a,
    b.host AS host_b,
    true AS compared,
    written([a.start, b.start, a.stop, b.stop]) AS places,
    b.consumer || ' was granted it in generation ' || generation_text(b.granted) || '; ' || a.consumer
        || ' had been since generation ' || generation_text(a.granted) || ', '
        || CASE
            WHEN a.ended IS NULL THEN 'which never gave it away'
            WHEN a.held IS NULL THEN coalesce(a.finish || ' by then', 'until the group went on without it')
            ELSE a.finish || ' in generation ' || a.held
        END AS detail
FROM judged
WHERE name IS NOT NULL;

-- Seen in the leader's log, where that of the new owner is missing or has nothing of it: a plan gives a partition to
-- a member in a generation that its owner joined with it. EAGER owners had revoked it by then. The plan was in force
-- where the owner revoked what the plan takes, or synced.
INSERT INTO found BY NAME
WITH early AS (
    SELECT
        plans."group", topic, partition, plans.generation, plans.member, plans.location, a, me.member AS own,
        row_number() OVER (PARTITION BY plans."group", topic, partition, a.number ORDER BY plans.generation) AS nth
    FROM plans
    JOIN (SELECT "group", topic, partition, owned AS a FROM owned) USING ("group", topic, partition)
    JOIN participants AS me
        ON me."group" = plans."group" AND me.generation = plans.generation AND me.consumer = a.consumer
    WHERE me.member <> plans.member
        AND coalesce(a.granted < plans.generation, a.start IS NULL)
        AND CASE
            WHEN a.finish = 'revoked' THEN a.held = plans.generation OR (a.held > plans.generation AND me.synced IS NOT NULL)
            ELSE me.synced IS NOT NULL AND coalesce(a.ended > me.synced, a.began < me.synced)
        END
),
-- By its log the new owner has been told of by now.
said AS (
    SELECT "group", topic, partition, unnest(generations) AS generation
    FROM found
    WHERE "check" IN ('owned-twice', 'granted-before-revoked') AND partition IS NOT NULL
),
named AS (
    SELECT early.*, them.consumer AS new_owner
    FROM early
    ANTI JOIN said USING ("group", topic, partition, generation)
    LEFT JOIN participants AS them
        ON them."group" = early."group" AND them.generation = early.generation AND them.member = early.member
    WHERE nth = 1
)
SELECT
    finding_id('granted-before-revoked', named, written([a.start, location])) AS id,
    'granted-before-revoked' AS "check",
    "group", topic, partition,
    location.moment AS began,
    greatest(a.ended, location.moment) AS ended,
    coalesce(greatest(a.ended, location.moment), end_of("group")) - location.moment AS lasted,
    [a.consumer, new_owner] AS consumers,
    [own, member] AS members,
    [a.granted, generation] AS generations,
    true AS certain,
    written([a.start, location, a.stop]) AS places,
    'the plan of ' || location.consumer || ' for generation ' || generation || ' gives it to '
        || coalesce(new_owner, member) || '; ' || a.consumer || ' had been its owner since generation '
        || generation_text(a.granted) || ', '
        || CASE WHEN a.finish = 'revoked' THEN 'and revoked it in generation ' || a.held ELSE 'and still was' END AS detail
FROM named;

-- Gaps that a settled group with members left as they were.
CREATE TEMP TABLE unowned AS
WITH lasting AS (SELECT * FROM gaps WHERE until - since >= getvariable('stranded')),
-- From the first lull of its group that it has a part of, long enough, to the last; lulls do not overlap.
alive AS (SELECT "group", since, until FROM lulls WHERE alive),
resting AS (
    SELECT
        lasting."group", topic, partition, a, b, lasting.since,
        greatest(lasting.since, early.since) AS calm,
        least(lasting.until, late.until) AS stir
    FROM lasting
    ASOF JOIN alive AS early
        ON lasting."group" = early."group" AND lasting.since + getvariable('stranded') <= early.until
    ASOF JOIN alive AS late
        ON lasting."group" = late."group" AND lasting.until - getvariable('stranded') >= late.since
    WHERE early.since + getvariable('stranded') <= lasting.until
),
latest AS (
    SELECT "group", moment, max_by(topics, {consumer: consumer}) AS topics
    FROM subscriptions
    GROUP BY "group", moment
),
-- Not those of a topic to which nobody subscribes any more: the last to subscribe meanwhile leaves it out.
dropped AS (
    SELECT resting."group", topic, partition, since
    FROM resting
    ASOF JOIN latest ON resting."group" = latest."group" AND stir >= latest.moment
    WHERE latest.moment >= a.began AND NOT list_contains(topics, topic)
),
-- In which generation it was.
held AS (
    SELECT resting."group", topic, partition, resting.since, held.generation, held.missing, held.planned
    FROM resting
    ASOF LEFT JOIN generations AS held ON held."group" = resting."group" AND resting.calm >= held.began
),
-- Not what its plan gives to somebody whose log is not here.
elsewhere AS (
    SELECT held."group", held.topic, held.partition, held.since
    FROM held
    JOIN plans USING ("group", topic, partition, generation)
    ANTI JOIN participants ON participants."group" = held."group" AND participants.member = plans.member
)
SELECT
    resting.*,
    coalesce(held.missing, false) OR coalesce(since_epochs <= calm, false) AS missing,
    held.generation,
    held.planned,
    plans.member AS planned_for
FROM resting
JOIN held USING ("group", topic, partition, since)
LEFT JOIN plans
    ON plans."group" = resting."group" AND plans.topic = resting.topic AND plans.partition = resting.partition
    AND plans.generation = held.generation
LEFT JOIN (SELECT "group", since AS since_epochs FROM epochal) AS epochs USING ("group")
ANTI JOIN dropped USING ("group", topic, partition, since)
ANTI JOIN elsewhere USING ("group", topic, partition, since)
-- Nor while a member that gives it away has not said that it has: the group waits for that.
ANTI JOIN stuck ON stuck."group" = resting."group" AND stuck.since <= resting.calm
-- Not where nobody logs what it is given.
SEMI JOIN (SELECT "group" FROM consumers WHERE owns = 1) USING ("group");

INSERT INTO found BY NAME
WITH cut_off AS (
    SELECT "group", calm, min(unsaid.consumer) AS consumer
    FROM (SELECT DISTINCT "group", calm FROM unowned)
    JOIN unsaid USING ("group")
    LEFT JOIN vanished USING ("group", consumer)
    WHERE unsaid.since <= calm AND coalesce(unsaid.until > calm, true) AND coalesce(gone > calm, true)
        AND heard < calm + getvariable('stranded')
    GROUP BY ALL
)
SELECT
    -- What the log does not see begin is told apart by where it ends.
    finding_id('stranded', unowned, written([coalesce(a.start, a.stop)])) AS id,
    'stranded' AS "check",
    "group", topic, partition,
    calm AS began,
    CASE WHEN b IS NOT NULL THEN stir END AS ended,
    stir - calm AS lasted,
    [a.consumer] AS consumers,
    [a.member] AS members,
    [a.granted] AS generations,
    false AS certain,
    CASE
        WHEN silent.consumer IS NOT NULL THEN 'no line says what ' || silent.consumer || ' owns'
        WHEN missing THEN 'a member whose log is not here may own it'
        WHEN crooked.host IS NOT NULL THEN 'the clock of ' || crooked.host || ' is far off, and too little is known of it to put it right'
        WHEN least(stir, spoken.until) - calm < getvariable('stranded') THEN 'the logs of this group end before that'
        WHEN cut_off.consumer IS NOT NULL
            THEN 'the log of ' || cut_off.consumer || ' says nothing more after it was told what to own; any later line of it '
                || 'would show that it is not cut off there'
        WHEN b IS NULL AND broken.consumer IS NOT NULL THEN 'the log of ' || broken.consumer || ' breaks off in a rebalance'
    END AS doubt,
    true AS compared,
    a.host AS host_a,
    b.host AS host_b,
    written([a.start, a.stop, b.start]) AS places,
    'nobody owns it since ' || a.consumer || ' did, and the group had come to rest'
        || CASE
            WHEN planned_for IS NOT NULL
                THEN '; the plan of generation ' || generation || ' gives it to ' || planned_for || ', which did not take it'
            WHEN planned THEN '; the plan of generation ' || generation || ' gives it to nobody'
            ELSE ''
        END AS detail
FROM unowned
LEFT JOIN spoken USING ("group")
LEFT JOIN crooked USING ("group")
LEFT JOIN (
    SELECT "group", min(consumer) AS consumer
    FROM consumers
    WHERE taken > coalesce(besides, 0)
    GROUP BY "group"
) AS broken USING ("group")
LEFT JOIN cut_off USING ("group", calm)
LEFT JOIN (
    SELECT "group", min(consumer) AS consumer FROM consumers WHERE synced = 1 AND owns = 0 GROUP BY "group"
) AS silent USING ("group");

-- Gaps between two owners that lasted too long although the group had members.
INSERT INTO found BY NAME
WITH lasting AS (
    SELECT * FROM gaps WHERE b IS NOT NULL AND until - since >= getvariable('pause')
),
dead AS (
    SELECT DISTINCT lasting."group", topic, partition, lasting.since
    FROM lasting
    JOIN lulls AS calm USING ("group")
    WHERE calm.gone AND calm.since < lasting.until AND calm.until > lasting.since
),
resting AS (
    SELECT DISTINCT lasting."group", topic, partition, since
    FROM lasting
    JOIN (
        SELECT "group", topic, partition, calm, CASE WHEN b IS NOT NULL THEN stir END AS stir FROM unowned
    ) USING ("group", topic, partition)
    WHERE calm < until AND stir > since
)
SELECT
    finding_id('long-pause', lasting, written([a.stop, b.start])) AS id,
    'long-pause' AS "check",
    "group", topic, partition,
    since AS began,
    until AS ended,
    until - since AS lasted,
    [a.consumer, b.consumer] AS consumers,
    [a.member, b.member] AS members,
    [a.granted, b.granted] AS generations,
    true AS certain,
    written([a.stop, b.start]) AS places,
    'nobody owned it between ' || a.consumer || ' and ' || b.consumer AS detail
FROM lasting
ANTI JOIN dead USING ("group", topic, partition, since)
ANTI JOIN resting USING ("group", topic, partition, since);

-- Movements between two generations around which neither members nor subscriptions changed. What a COOPERATIVE
-- consumer revokes it was told to in that generation, so that one counts; an EAGER one revokes everything before it
-- joins the next. It is EAGER if it had been told its assignment for a while. Generations tell which came first,
-- whatever the clocks of the two say.
INSERT INTO found BY NAME
WITH moved AS (
    SELECT meetings.*
    FROM meetings
    JOIN generations AS there ON there."group" = meetings."group" AND there.generation = b.granted
    JOIN generations AS here ON here."group" = meetings."group" AND here.generation = a.held
    LEFT JOIN participants AS synced
        ON synced."group" = meetings."group" AND synced.generation = a.held AND synced.consumer = a.consumer
    LEFT JOIN epochal ON epochal."group" = meetings."group"
    WHERE next
        AND coalesce(epochal.since > a.ended, true)
        AND a.consumer <> b.consumer
        AND a.held < b.granted
        AND a.finish = 'revoked'
        AND here.era = there.era
        AND (coalesce(a.ended - synced.synced > getvariable('at_once'), false) OR NOT here.changed)
)
SELECT
    finding_id('needless-movement', moved, written([a.stop, b.start])) AS id,
    'needless-movement' AS "check",
    "group", topic, partition,
    least(a.ended, b.began) AS began,
    greatest(a.ended, b.began) AS ended,
    greatest(a.ended, b.began) - least(a.ended, b.began) AS lasted,
    [a.consumer, b.consumer] AS consumers,
    [a.member, b.member] AS members,
    [a.granted, b.granted] AS generations,
    true AS certain,
    written([a.stop, b.start]) AS places,
    'it moved from ' || a.consumer || ' to ' || b.consumer || ' in generation ' || b.granted
        || ', and the members were the same' AS detail
FROM moved;

-- What of the difference of two clocks is put right already.
UPDATE found
SET moved =
    coalesce((SELECT shift FROM shifts WHERE shifts."group" = found."group" AND host = host_a), 0)
    - coalesce((SELECT shift FROM shifts WHERE shifts."group" = found."group" AND host = host_b), 0)
WHERE compared AND EXISTS (FROM shifts WHERE shifts."group" = found."group");
