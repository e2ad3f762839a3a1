-- What the other files have in common. Times are microseconds since 1970 throughout, `end` that of the whole log.

-- An event that a finding is about, with where it is written.
CREATE TEMP MACRO location(moment, kind, consumer, generation, file, line) AS
    struct_pack(moment := moment, kind := kind, consumer := consumer, generation := generation, file := file, line := line);

-- What tells one location from another: not its file or directory, which depend on where the logs lie and what is
-- read besides.
CREATE TEMP MACRO location_id(one) AS
    concat_ws(' ', one.moment::VARCHAR, one.kind, regexp_replace(one.consumer, '@[^@]*/', '@', 'g'));

-- The same whenever the same is found again, also when more of it is known.
CREATE TEMP MACRO finding_id(name, about, named) AS
    substr(
        sha256(
            concat_ws(
                '|', name, about."group", about.topic, about.partition::VARCHAR,
                nullif(
                    array_to_string([location_id(one) FOR one IN named], '|'),
                    ''
                )
            )
        ),
        1, 12
    );

CREATE TEMP MACRO written(locations) AS
    list_filter(locations, lambda one: one IS NOT NULL);

-- When the log of a group ends, by the clock that its time line has.
CREATE TEMP MACRO end_of(one) AS
    getvariable('end') - coalesce(map_extract(getvariable('ahead'), one)[1], 0)::BIGINT;

CREATE TEMP MACRO generation_text(generation) AS coalesce(generation::VARCHAR, '?');

-- `moved`: by how much more the clock of `host_a` was put right than that of `host_b`, null for not at all.
-- What the checks add to, and `finish.sql` makes the findings of. `certain`: whatever the clocks say, unless there is a
-- `doubt`.
CREATE TEMP TABLE found (
    id VARCHAR,
    "check" VARCHAR,
    "group" VARCHAR,
    topic VARCHAR,
    partition INTEGER,
    began BIGINT,
    ended BIGINT,
    lasted BIGINT,
    consumers VARCHAR[],
    members VARCHAR[],
    generations INTEGER[],
    certain BOOLEAN,
    doubt VARCHAR,
    compared BOOLEAN,
    host_a VARCHAR,
    host_b VARCHAR,
    moved BIGINT,
    places STRUCT(moment BIGINT, kind VARCHAR, consumer VARCHAR, generation INTEGER, file VARCHAR, line BIGINT)[],
    detail VARCHAR
);
