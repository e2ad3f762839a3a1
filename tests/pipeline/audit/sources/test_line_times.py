"""When a line was written, and up to when a file goes."""

from __future__ import annotations

import pytest
from rebalance_verifier.pipeline.audit.sources.parsing import ANY_ORDER, NO_YEAR, LineParser
from rebalance_verifier.pipeline.audit.sources.times import moment, undated

CLOCK = " 03:04:05"
DATES = {
    "ISO 8601": "2024-01-02 03:04:05,678",
    "basic": "20240102T030405,678",
    "the day first": "02 Jan 2024 03:04:05",
    "the month first": "Jan 2, 2024 @ 03:04:05.678",
    "milliseconds": "1704164645678",
    "microseconds": "1704164645678000",
    "seconds": "1704164645",
    "seconds and a fraction": "1704164645.678",
    "ISO 8601 with dots": "2024.01.02 03:04:05.678",
    "dots": "2.1.2024 03:04:05,678",
    "a day of one digit": "2/Jan/2024:03:04:05",
    "java.util.logging": "Jan 02, 2024 3:04:05 AM",
    "a month in full": "Tuesday, January 2, 2024 3:04:05 AM",
    "date": "Tue Jan  2 03:04:05 UTC 2024",
    "date without a zone": "Tue Jan 02 03:04:05 2024",
}
"""The second of January 2024, as loggers write it."""


@pytest.mark.parametrize("layout", DATES)
def test_a_time_with_a_date_beside_it_is_dated_whatever_the_layout(layout):
    text = f"at {DATES[layout]} it was{CLOCK}"
    assert not undated(text)
    assert moment(text) in (1_704_164_645_000_000, 1_704_164_645_678_000)


@pytest.mark.parametrize(
    ("text", "hour"), [("12:04:05 AM", 0), ("3:04:05 AM", 3), ("12:04:05 PM", 12), ("3:04:05 PM", 15)]
)
@pytest.mark.parametrize("day", ["Jan 2, 2024", "1/17/2024,", "17/1/2024", "17-Jan-2024", "01-17-2024"])
def test_the_afternoon_is_not_the_morning(text, hour, day):
    assert moment(f"{day} {text}") == moment(f"2024-01-{2 if day[:3] == 'Jan' else 17:02} {hour:02}:04:05")


@pytest.mark.parametrize("half", ["AM", "PM"])
def test_the_afternoon_is_not_the_morning_where_the_head_is_known_either(half):
    """A head is worked out once, and known for the lines that differ in their time alone."""
    parser = LineParser()
    parser.content("a.log", [(n, f"2024-01-02 0{n}:15:03.5 {half} {JOINS}") for n in (1, 2, 3)])
    afternoon = 12 * (half == "PM")
    assert [row.at for row in parser.rows] == [
        moment(f"2024-01-02 {n + afternoon:02}:15:03.5") for n in (1, 2, 3)
    ]


def test_a_time_of_the_day_in_two_halves_is_of_its_half():
    assert moment("01:04:05 PM", date="2024-01-02") == moment("2024-01-02 13:04:05")


def test_the_year_turns_between_two_days_without_one():
    old, new = (moment(f"{day} 00:00:30 host", date="2025-12-31") for day in ("Dec 31", "Jan  1"))
    assert old is not None
    assert new == old + 86_400_000_000
    assert moment("Dec 31 00:00:30", date="2026-01-01") == old


@pytest.mark.parametrize("day", ["Jan  2", "02-Jan", "I0102"])
def test_a_day_without_a_year_is_called_so(day):
    parser = LineParser()
    parser.content("a.log", [(1, f"{day} 10:15:03 {JOINS}")])
    assert [one.why for one in parser.malformed] == [NO_YEAR]


JOINS = "INFO [Consumer clientId=a, groupId=g] (Re-)joining group"


@pytest.mark.parametrize(
    "date",
    ["03/02/2026", "3/2/2026,", "03/02/26", "02.03.26", "02-03-2026", "02.03.", "02-03", "2/3"],
)
@pytest.mark.parametrize("day", [None, "2026-03-02"])
def test_a_date_that_nobody_can_tell_is_no_time_without_one(date, day):
    """The day of --date would fold two days into one."""
    parser = LineParser(date=day)
    parser.content("a.log", [(1, f"{date} 10:15:03 {JOINS}")])
    assert parser.rows == []
    assert [one.why for one in parser.malformed] == [ANY_ORDER]


@pytest.mark.parametrize("text", ["Jan  2", "02-Jan", "2 Jan", "I0102"])
def test_a_day_without_a_year_is_of_the_year_of_the_option_and_not_of_its_day(text):
    assert moment(f"{text} 03:04:05.678", date="2024-05-06") == moment("2024-01-02 03:04:05.678")


@pytest.mark.parametrize("text", ["03:04:05", "Jan  2 03:04:05 host", "[03:04:05,678] 12345"])
def test_a_time_of_the_day_alone_is_undated(text):
    assert undated(text)
    assert moment(text) is None


@pytest.mark.parametrize("count", [1, 2, 50, 60, 300])
def test_a_file_goes_up_to_its_last_time_also_of_lines_that_say_nothing_else(count):
    """Only every 200th of them is looked at on the way."""
    lines = [f"2024-01-02 03:{n // 60:02}:{n % 60:02} nothing of interest" for n in range(count)]
    parser = LineParser()
    parser.content("a.log", enumerate([*lines, "no time", "nor here"], 1))
    assert parser.until == moment(lines[-1])
    parser.content("older.log", [(1, "2024-01-01 00:00:00 nothing of interest")])
    assert parser.until == moment(lines[-1])
