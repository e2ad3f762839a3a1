-- The life of each group as a whole: its consumers, its generations, and when nothing happened.

-- Until when the logs of each group go: others, that are read with them, may go on.
CREATE TEMP TABLE spoken AS
SELECT
    "group",
    max(coalesce(file_ends.moment, getvariable('end'))) - coalesce(map_extract(getvariable('ahead'), "group")[1], 0)
        AS until
FROM (SELECT DISTINCT "group", file FROM timed)
LEFT JOIN file_ends USING (file)
GROUP BY "group";

-- Where a consumer starts or closes: it owns nothing any more. At one instant in the order of its log.
CREATE TEMP TABLE turns AS
SELECT
    "group", consumer, moment,
    min_by(location(moment, kind, consumer, generation, file, line), {file: file, line: line}) AS location
FROM timed
WHERE kind IN ('started', 'closed')
GROUP BY "group", consumer, moment;

-- Since when each member of the consumer protocol has been in the group, where it joined in this log.
CREATE TEMP TABLE entered AS
SELECT "group", consumer, min(moment) AS moment
FROM timed
WHERE kind IN ('joining', 'joined') AND protocol = 'consumer' AND consumer IS NOT NULL
GROUP BY "group", consumer;

-- Who was a member in which generation, and since when it knew its assignment, where that is logged.
CREATE TEMP TABLE participants AS
SELECT
    "group", generation, consumer,
    max(member) AS member,
    min(moment) AS moment,
    max(moment) FILTER (kind = 'synced') AS synced,
    bool_or(protocol IS NOT DISTINCT FROM 'consumer') AS by_epoch,
    bool_and(source <> 'events') AS logged
FROM timed
WHERE kind IN ('joined', 'synced') AND generation IS NOT NULL AND consumer IS NOT NULL
GROUP BY "group", generation, consumer;

-- Consumers whose client logs no generation.
CREATE TEMP TABLE unnumbered AS
SELECT "group", consumer
FROM timed
WHERE kind IN ('joined', 'synced') AND consumer IS NOT NULL
GROUP BY "group", consumer
HAVING count(generation) = 0;

-- Since when a group has members of the consumer protocol. Each of these has an epoch of its own: whose epoch is an
-- older one is a member as much as the others, until it leaves or learns that it is none.
CREATE TEMP TABLE epochal AS
SELECT "group", min(moment) AS since FROM timed WHERE protocol = 'consumer' GROUP BY "group";

-- When who was told that it is a member, or that it is none any more.
CREATE TEMP TABLE told AS
SELECT "group", consumer, coalesce(host, consumer) AS host, moment, kind
FROM timed
WHERE consumer IS NOT NULL AND kind IN ('joined', 'synced', 'reset', 'leaving', 'closed', 'started')
UNION ALL
SELECT DISTINCT "group", joiners.consumer, coalesce(timed.host, ''), timed.moment, 'removed'
FROM timed
JOIN (
    SELECT DISTINCT "group", consumer, member
    FROM timed
    WHERE kind IN ('joined', 'synced') AND consumer IS NOT NULL AND member IS NOT NULL
) AS joiners USING ("group", member)
-- A static member that comes back is removed by its own join.
ANTI JOIN (
    SELECT "group", consumer, moment FROM timed WHERE kind IN ('joined', 'synced') AND instance IS NOT NULL
) AS returned
    ON returned."group" = timed."group" AND returned.consumer = joiners.consumer AND returned.moment = timed.moment
WHERE timed.kind = 'removed';

-- A consumer is told its share, and no line says all that it owns then: its log may break off there. It is heard of until
-- `heard`; at `until` it has another share, or none.
CREATE TEMP TABLE unsaid AS
SELECT "group", consumer, protocol, moment AS since, heard, until, location
FROM (
    SELECT
        "group", consumer, protocol, moment, heard,
        location(moment, kind, consumer, generation, file, line) AS location,
        lead(moment) OVER (PARTITION BY "group", consumer ORDER BY moment, file, line) AS until
    FROM timed
    WHERE consumer IS NOT NULL
        AND kind IN ('joining', 'joined', 'synced', 'reset', 'leaving', 'closed', 'started')
)
WHERE heard IS NOT NULL;

-- Whom leaders planned for and how many partitions, and how many members somebody says that there are.
CREATE TEMP TABLE counted AS
SELECT
    "group", generation,
    list_sort(list(DISTINCT member) FILTER (kind = 'planned' AND member IS NOT NULL)) AS plan,
    count(DISTINCT hash(topic, partition)) FILTER (kind = 'planned' AND partition IS NOT NULL) AS partitions,
    max(members) AS members,
    min(moment) FILTER (kind = 'stable') AS stable
FROM timed
WHERE kind IN ('planned', 'stable', 'joined') AND generation IS NOT NULL
GROUP BY "group", generation;

-- Members that a plan or the coordinator names, or somebody counts, and of which no line is here: of each group those of
-- the generation with the most. Whoever is named is known by its member id; a consumer whose client logs none may be any.
CREATE TEMP TABLE unlogged AS
WITH ids AS (
    SELECT DISTINCT "group", consumer, member
    FROM timed
    WHERE consumer IS NOT NULL AND kind <> 'planned' AND member IS NOT NULL
),
unknown AS (
    SELECT consumers."group", count_if(ids.consumer IS NULL) AS unnamed, count_if(numbered.consumer IS NULL) AS uncounted
    FROM consumers
    LEFT JOIN (SELECT DISTINCT "group", consumer FROM ids) AS ids
        ON ids."group" = consumers."group" AND ids.consumer = consumers.consumer
    LEFT JOIN (SELECT DISTINCT "group", consumer FROM participants) AS numbered
        ON numbered."group" = consumers."group" AND numbered.consumer = consumers.consumer
    WHERE consumers.consumer IS NOT NULL
    GROUP BY consumers."group"
),
names AS (
    SELECT DISTINCT "group", generation, member
    FROM timed
    WHERE kind IN ('planned', 'granted') AND member IS NOT NULL AND generation IS NOT NULL
),
by_name AS (
    SELECT names."group", generation, count(*) AS whole, count_if(ids.member IS NULL) AS strangers
    FROM names
    LEFT JOIN (SELECT DISTINCT "group", member FROM ids) AS ids
        ON ids."group" = names."group" AND ids.member = names.member
    GROUP BY names."group", generation
),
present AS (
    SELECT "group", generation, count(*) AS present
    FROM participants
    GROUP BY "group", generation
    HAVING NOT bool_or(by_epoch)
),
by_number AS (
    SELECT "group", generation, members AS whole, members - present AS strangers
    FROM counted
    JOIN present USING ("group", generation)
    WHERE members IS NOT NULL
),
each AS (
    SELECT
        "group", generation,
        greatest(by_number.whole, by_name.whole) AS members,
        greatest(by_number.strangers - uncounted, by_name.strangers - unnamed) AS missing
    FROM by_name
    FULL JOIN by_number USING ("group", generation)
    JOIN unknown USING ("group")
)
SELECT
    "group",
    max_by({members: members, missing: missing}, {missing: missing, generation: generation}) AS most
FROM each
WHERE missing > 0
GROUP BY "group";

-- Each generation: `began` with its first member. `era` counts how often the members, their subscriptions or their
-- topics had changed until then, `changed` says whether they did with this one. A member id is a new one when a process
-- has started again; before the first generation in the log there may have been anything. Whose log is not at hand is
-- known by the leader's plan: `planned` says that there is one. Of `seen` generations there are members in the log;
-- `missing` says that there were others: the plan or a number says so, or neither is in the log. In a group without
-- numbers a new one is when the consumer that joins most often does, and others may be missing.
CREATE TEMP TABLE generations AS
WITH each AS (
    SELECT
        "group", generation,
        min(moment) AS moment,
        bit_xor(hash(consumer, coalesce(member, ''))) AS who,
        count(*) AS present,
        list(DISTINCT member) FILTER (member IS NOT NULL) AS known,
        bool_or(by_epoch) AS by_epoch,
        bool_and(logged) AS logged
    FROM participants
    GROUP BY "group", generation
),
all_of_them AS (
    SELECT
        coalesce(each."group", counted."group") AS "group",
        coalesce(each.generation, counted.generation) AS generation,
        coalesce(each.moment, stable) AS moment,
        who, plan, partitions, present IS NOT NULL AS seen,
        coalesce(
            by_epoch
            OR members > present
            OR CASE
                WHEN plan IS NULL THEN logged AND members IS NULL
                WHEN each.known IS NOT NULL THEN NOT list_has_all(each.known, plan)
            END,
            false
        ) AS missing
    FROM each
    FULL JOIN counted
        ON counted."group" = each."group" AND counted.generation = each.generation
    WHERE coalesce(each.moment, stable) IS NOT NULL
),
compared AS (
    SELECT
        "group", generation, moment, plan, seen, missing,
        coalesce(who <> lag(who) OVER in_order, true)
            OR coalesce(plan <> last_value(plan IGNORE NULLS) OVER former, false)
            -- A topic has more partitions than any plan before had.
            OR coalesce(partitions > max(partitions) OVER former, false) AS changed
    FROM all_of_them
    WINDOW
        in_order AS (PARTITION BY "group" ORDER BY moment, generation),
        former AS (
            PARTITION BY "group" ORDER BY moment, generation ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
uncounted AS (
    SELECT "group", consumer, kind, moment
    FROM timed
    WHERE "group" NOT IN (SELECT "group" FROM all_of_them)
),
busiest AS (
    SELECT "group", max_by(consumer, {joins: joins, consumer: consumer}) AS consumer
    FROM (SELECT "group", consumer, count(*) AS joins FROM uncounted WHERE kind = 'joined' GROUP BY ALL)
    GROUP BY "group"
),
changes AS (
    SELECT "group", generation, moment, changed, plan IS NOT NULL AS planned, seen, missing, true AS one FROM compared
    UNION ALL
    SELECT "group", NULL, moment, true, false, false, false, false
    FROM timed
    WHERE kind IN ('subscribed', 'started', 'changed')
    UNION ALL
    SELECT "group", NULL, moment, true, false, false, false, false
    FROM uncounted
    WHERE kind IN ('leaving', 'closed', 'reset', 'removed')
    UNION ALL
    SELECT DISTINCT "group", NULL, moment, false, false, true, true, true
    FROM uncounted
    JOIN busiest USING ("group", consumer)
    WHERE kind = 'joined'
),
eras AS (
    SELECT
        "group", generation, moment AS began, changed, planned, seen, missing, one,
        sum(changed::INT) OVER (
            PARTITION BY "group" ORDER BY moment, generation ROWS UNBOUNDED PRECEDING
        )::BIGINT AS era
    FROM changes
)
SELECT * EXCLUDE (one) FROM eras WHERE one;

-- Consumers that were no member of some later generation, and never came back; and those that were removed, and are
-- not heard of again.
CREATE TEMP TABLE vanished AS
WITH shared AS (
    SELECT generations.*
    FROM generations
    LEFT JOIN epochal USING ("group")
    WHERE seen AND (since IS NULL OR began < since)
),
former AS (
    SELECT "group", consumer, gone
    FROM (SELECT "group", consumer, max(generation) AS generation FROM participants GROUP BY "group", consumer)
    JOIN (
        SELECT "group", generation, lead(began) OVER (PARTITION BY "group" ORDER BY generation) AS gone
        FROM shared
    ) USING ("group", generation)
    WHERE gone IS NOT NULL
),
removed AS (
    SELECT "group", consumer, max(moment) AS gone
    FROM told
    GROUP BY "group", consumer
    HAVING max_by(kind, {moment: moment, last: kind = 'removed'}) = 'removed'
)
SELECT "group", consumer, min(gone) AS gone
FROM (FROM former UNION ALL FROM removed)
GROUP BY "group", consumer;

-- Members of the consumer protocol that had not done what they were told when the log ended, for so long: by their own
-- transitions, or by the coordinator, which waits for what they are to revoke. Of each group the first of them, and until
-- when whoever says so is heard of.
CREATE TEMP TABLE stuck AS
WITH granted AS (
    SELECT
        "group", member, max(moment) AS since,
        max_by({heard: heard}, {moment: moment, line: line}) AS last,
        max_by(location(moment, kind, consumer, generation, file, line), {moment: moment, line: line}) AS location
    FROM timed
    WHERE kind = 'granted'
    GROUP BY "group", member
),
gone AS (SELECT "group", member, max(moment) AS moment FROM timed WHERE kind = 'removed' GROUP BY "group", member),
-- Whose partitions others have been assigned since has acknowledged that it gave them away.
done AS (
    SELECT DISTINCT gave."group", gave.consumer
    FROM unsaid
    JOIN timed AS gave USING ("group", consumer)
    -- Whoever owns it now: the clocks of members of this protocol are not compared.
    JOIN (
        SELECT "group", topic, partition, consumer
        FROM timed
        SEMI JOIN (SELECT "group" FROM unsaid WHERE protocol = 'consumer' AND until IS NULL) AS waiting USING ("group")
        WHERE kind IN ('assigned', 'revoked', 'lost') AND partition IS NOT NULL AND protocol = 'consumer'
        GROUP BY "group", topic, partition, consumer
        HAVING max_by(kind, {moment: moment, file: file, line: line}) = 'assigned'
    ) AS got ON got."group" = gave."group" AND got.topic = gave.topic AND got.partition = gave.partition
    WHERE unsaid.protocol = 'consumer' AND until IS NULL
        AND gave.kind = 'revoked' AND gave.moment >= since AND got.consumer <> gave.consumer
),
waiting AS (
    SELECT unsaid."group", consumer AS who, since, heard, location
    FROM unsaid
    LEFT JOIN vanished USING ("group", consumer)
    ANTI JOIN done USING ("group", consumer)
    WHERE protocol = 'consumer' AND until IS NULL AND coalesce(gone <= since, true)
    UNION ALL
    SELECT granted."group", member, since, last.heard, location
    FROM granted
    LEFT JOIN gone USING ("group", member)
    WHERE last.heard IS NOT NULL AND coalesce(gone.moment < since, true)
)
SELECT
    "group",
    unnest(min_by(
        {who: who, since: since, heard: coalesce(heard, since), location: location},
        -- Who is heard of says more.
        {silent: coalesce(heard, since) - since < getvariable('settle'), since: since, who: who}
    ))
FROM waiting
WHERE end_of("group") - since >= getvariable('settle')
GROUP BY "group";

-- What happened to each group as a group, in order. Lines of one file are in its order; which of two files was first
-- at one instant nobody knows.
CREATE TEMP TABLE stirs AS
SELECT
    "group", moment, kind, consumer, generation, file, line,
    kind IN ('leaving', 'closed', 'empty', 'removed') AS gone,
    kind IN ('joining', 'preparing', 'rebalancing') AS under_way,
    -- JOINED is one more of those that are under way, unless nobody logs SYNCED.
    kind = 'joined' AND protocol IS DISTINCT FROM 'consumer' AS joined
FROM timed
WHERE kind IN (
    'started', 'joining', 'joined', 'synced', 'reset', 'leaving', 'closed', 'rebalancing',
    'preparing', 'stable', 'removed', 'empty'
);

-- The instants of each group, with what its files say last at each.
CREATE TEMP TABLE instants AS
WITH lasts AS (
    SELECT
        "group", moment, file,
        max_by(
            {gone: gone, under_way: under_way, joined: joined},
            -- Who replaces another removes it with the line in which it joins.
            {line: line, last: kind <> 'removed', kind: kind}
        ) AS last
    FROM stirs
    GROUP BY "group", moment, file
),
syncing AS (SELECT "group", bool_or(kind = 'synced') AS syncs FROM stirs GROUP BY "group"),
each AS (
    SELECT
        "group", moment,
        bool_or(last.gone) AS gone,
        bool_and(NOT last.gone AND NOT last.under_way AND NOT (last.joined AND syncs)) AS alive,
        bool_or(last.under_way OR (last.joined AND syncs)) AS busy,
        bool_and(last.under_way OR (last.joined AND syncs)) AS all_busy
    FROM lasts
    JOIN syncing USING ("group")
    GROUP BY "group", moment
)
SELECT *, lag(moment) OVER in_order AS before, lead(moment) OVER in_order AS after
FROM each
WINDOW in_order AS (PARTITION BY "group" ORDER BY moment);

-- The times in which nothing happened to a group, up to the end of the log: `gone`, without members; `alive`, with
-- members and no rebalance under way.
CREATE TEMP TABLE lulls AS
SELECT "group", moment AS since, coalesce(after, end_of("group")) AS until, gone, alive
FROM instants
WHERE coalesce(after, end_of("group")) - moment >= getvariable('stranded');

-- Runs of generations of which any `storm` came within `storm_within`.
CREATE TEMP TABLE storms AS
WITH dense AS (
    SELECT
        *,
        coalesce(
            began - lag(began, getvariable('storm') - 1) OVER in_order <= getvariable('storm_within'), false
        ) AS dense
    FROM generations
    WINDOW in_order AS (PARTITION BY "group" ORDER BY began, generation)
),
marked AS (
    -- A generation is in a storm when one of the next completes a dense run.
    SELECT
        *,
        bool_or(dense) OVER (
            PARTITION BY "group" ORDER BY began, generation
            ROWS BETWEEN CURRENT ROW AND getvariable('storm') - 1 FOLLOWING
        ) AS within
    FROM dense
),
begun AS (
    SELECT *, within AND NOT coalesce(lag(within) OVER in_order, false) AS begins
    FROM marked
    WINDOW in_order AS (PARTITION BY "group" ORDER BY began, generation)
),
numbered AS (
    SELECT *, sum(begins::INT) OVER (PARTITION BY "group" ORDER BY began, generation ROWS UNBOUNDED PRECEDING) AS storm
    FROM begun
)
SELECT
    "group",
    min(began) AS since,
    max(began) AS until,
    count(*) AS count,
    count_if(changed) AS changes,
    bool_or(seen) AS seen
FROM numbered
WHERE within
GROUP BY "group", storm;

-- What a consumer was given and does not subscribe to, in how many generations, and by whose plan.
CREATE TEMP TABLE unwanted AS
SELECT
    "group", consumer,
    any_value(topic) AS topic,
    count(DISTINCT generation) AS generations,
    min_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS first
FROM timed
WHERE kind = 'unwanted'
GROUP BY "group", consumer;

-- Groups whose last rebalance had not ended when the log did. Either a rebalance began `settle` ago or more, and
-- nothing since says that it ended (`waiting`), or one came after the other, never so long apart, for that long and
-- until the end, although nobody came or went: after a change of members the first generation is due to it, and the one
-- that follows it. `storm` of them at once are enough. Where no leader's log says whom it planned for, others may have
-- come and gone, and it is not certain.
CREATE TEMP TABLE unsettled AS
WITH calm AS (
    SELECT
        "group",
        max(moment) FILTER (NOT all_busy) AS rested,
        max(moment) FILTER (busy AND NOT all_busy) AS mixed,
        max(moment) AS latest
    FROM instants
    GROUP BY "group"
),
begun AS (
    SELECT
        "group",
        any_value(mixed) AS mixed,
        any_value(latest) AS latest,
        coalesce(
            min(moment) FILTER (all_busy AND (rested IS NULL OR moment > rested)),
            max(moment) FILTER (moment = mixed AND mixed = latest)
        ) AS busy_since,
        max(moment) FILTER (coalesce(moment - before >= getvariable('settle'), true)) AS run_since
    FROM calm
    JOIN instants USING ("group")
    GROUP BY "group"
),
causeless AS (
    SELECT
        *,
        era = lag(era, 2) OVER in_order AS causeless,
        began - lag(began) OVER in_order AS apart
    FROM generations
    WINDOW in_order AS (PARTITION BY "group" ORDER BY began, generation)
),
pauses AS (
    SELECT
        "group", max(began) FILTER (NOT coalesce(causeless, false)) AS caused,
        max(began) FILTER (apart > getvariable('storm_within') / getvariable('storm')) AS paused
    FROM causeless
    GROUP BY "group"
),
rapid AS (
    SELECT "group", min(began) AS since, count(*) AS generations, bool_and(planned) AS planned
    FROM causeless
    JOIN pauses USING ("group")
    WHERE coalesce(causeless, false) AND began > coalesce(greatest(caused, paused), 0)
    GROUP BY "group"
    HAVING count(*) >= getvariable('storm')
        AND end_of("group") - max(began) <= getvariable('storm_within') / getvariable('storm')
),
slow AS (
    -- `rests`: since the last of them it was quiet for much longer than they were apart.
    SELECT
        "group", count(*) AS generations, bool_and(planned) AS planned,
        end_of("group") - max(began)
            > greatest(2 * max(apart), getvariable('storm_within') / getvariable('storm')) AS rests
    FROM causeless
    JOIN begun USING ("group")
    WHERE causeless AND began >= run_since
    GROUP BY "group"
),
given AS (
    SELECT "group", max_by(unwanted, {generations: generations, consumer: consumer}) AS given
    FROM unwanted
    WHERE generations > 2
    GROUP BY "group"
),
judged AS (
    SELECT
        begun."group",
        coalesce(end_of(begun."group") - busy_since >= getvariable('settle'), false) AS waiting,
        rapid.since IS NOT NULL AS at_once,
        CASE WHEN waiting THEN busy_since WHEN at_once THEN rapid.since ELSE run_since END AS since,
        coalesce(CASE WHEN at_once THEN rapid.generations ELSE slow.generations END, 0) AS generations,
        given.given AS given,
        CASE
            -- Of members of the consumer protocol no line says that a rebalance has ended.
            WHEN waiting THEN busy_since IS DISTINCT FROM mixed AND epochal.since IS NULL
            WHEN NOT at_once AND slow.rests THEN false
            ELSE coalesce(CASE WHEN at_once THEN rapid.planned ELSE slow.planned END, false) OR given.given IS NOT NULL
        END AS certain,
        coalesce(NOT waiting AND NOT at_once AND slow.rests, false) AS rests,
        waiting OR at_once OR (
            end_of(begun."group") - latest < getvariable('settle')
            AND end_of(begun."group") - run_since >= getvariable('settle')
            AND coalesce(slow.generations, 0) > 1
        ) AS unsettled
    FROM begun
    LEFT JOIN rapid USING ("group")
    LEFT JOIN slow USING ("group")
    LEFT JOIN given USING ("group")
    LEFT JOIN epochal USING ("group")
)
SELECT
    "group", since, generations, waiting, at_once, certain, rests, given,
    min_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS first,
    max_by(location(moment, kind, consumer, generation, file, line), {moment: moment, file: file, line: line}) AS last
FROM judged
JOIN stirs USING ("group")
WHERE unsettled AND moment >= since
GROUP BY ALL;

-- What each consumer subscribed to when.
CREATE TEMP TABLE subscriptions AS
SELECT "group", consumer, moment, list(DISTINCT topic) AS topics
FROM timed
WHERE kind = 'subscribed'
GROUP BY "group", consumer, moment;
