"""The door: shorthand, members, limits, unions, stored forms."""

import json

import pytest

from betimes.domain.errors import BadSchedule, BadZone, NeverFires, TooLarge
from betimes.schedule import Schedule, fire_times
from facts_kit import parse, utc

NOW = utc("2026-03-28T12:00")


@pytest.mark.parametrize(
    ("line", "members"),
    [
        ("every 10m", {"type": "interval", "every": "PT10M", "anchor": "2026-03-28T12:00:00Z"}),
        ("every 1d", {"type": "interval", "every": "P1D", "anchor": "2026-03-28T12:00:00Z"}),
        ("every: 10m", {"type": "interval", "every": "PT10M", "anchor": "2026-03-28T12:00:00Z"}),
        ("PT10M", {"type": "interval", "every": "PT10M", "anchor": "2026-03-28T12:00:00Z"}),
        (
            "@every 1h30m",
            {"type": "interval", "every": "PT1H30M", "anchor": "2026-03-28T12:00:00Z"},
        ),
        ("rate(1 day)", {"type": "interval", "every": "PT24H", "anchor": "2026-03-28T12:00:00Z"}),
        (
            "rate(5 minutes)",
            {"type": "interval", "every": "PT5M", "anchor": "2026-03-28T12:00:00Z"},
        ),
        (
            "every P1M from 2026-01-31T09:00",
            {"type": "interval", "every": "P1M", "anchor": "2026-01-31T09:00:00"},
        ),
        ("0 9 * * *", {"type": "cron", "expr": "0 9 * * *", "dialect": "unix"}),
        ("cron: 0 9 * * mon-fri", {"type": "cron", "expr": "0 9 * * MON-FRI", "dialect": "unix"}),
        ("@daily", {"type": "cron", "expr": "0 0 * * *", "dialect": "unix"}),
        ("H H * * *", {"type": "cron", "expr": "H H * * *", "dialect": "unix"}),
        ("cron(0 9 ? * 2 *)", {"type": "cron", "expr": "0 9 ? * 2 *", "dialect": "aws"}),
        ("in 2h", {"type": "once", "at": "2026-03-28T14:00:00Z"}),
        ("2026-12-24T15:00", {"type": "once", "at": "2026-12-24T15:00:00"}),
        ("at(2026-12-24T15:00:00)", {"type": "once", "at": "2026-12-24T15:00:00"}),
        ("once: 2026-12-24T15:00+01:00", {"type": "once", "at": "2026-12-24T15:00:00+01:00"}),
        ("R5/2026-05-01T00:00Z/PT1H", {"type": "iso8601", "expr": "R5/2026-05-01T00:00Z/PT1H"}),
        ("manual", {"type": "manual"}),
        (
            "FREQ=DAILY;COUNT=5",
            {"type": "rrule", "expr": "FREQ=DAILY;COUNT=5", "anchor": "2026-03-28T12:00:00Z"},
        ),
    ],
)
def test_shorthand(line: str, members: dict[str, object]) -> None:
    """One line becomes complete members, with the creation time filled in."""
    assert parse(line, now=NOW).to_dict() == {**members, "timezone": "UTC"}


def test_the_zone_of_a_line() -> None:
    """`@ Zone` at the end wins over the default; a default fills what is unsaid."""
    assert parse("cron: 0 9 * * mon-fri @ Europe/Stockholm").timezone == "Europe/Stockholm"
    assert parse("0 9 * * * @ Asia/Tokyo", timezone="UTC").timezone == "Asia/Tokyo"
    assert parse("0 9 * * *", timezone="Asia/Tokyo").timezone == "Asia/Tokyo"
    assert parse("0 9 * * *").timezone == "UTC"
    assert parse("0 0 ? * 2 *", dialect="aws").to_dict()["dialect"] == "aws"


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus",
        "",
        "localtime",
        "posixrules",
        "Factory",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe/Berlin\0",
        "europe/berlin",
        "UTC+1",
        "Europe",
        "x" * 10_000,
    ],
)
def test_unknown_zones_are_refused(name: str) -> None:
    """By the list of the pinned release: no paths, nothing of the host."""
    with pytest.raises((BadZone, BadSchedule)) as caught:
        parse({"type": "cron", "expr": "* * * * *", "timezone": name})
    assert len(caught.value.sentence) < 300


def test_aliases_are_kept_as_given() -> None:
    """US/Pacific stays US/Pacific."""
    assert parse("0 9 * * *", timezone="US/Pacific").to_dict()["timezone"] == "US/Pacific"


def test_start_and_end_are_inclusive() -> None:
    """Fires at start_at and at end_at count."""
    schedule = parse(
        {
            "type": "cron",
            "expr": "0 * * * *",
            "start_at": "2026-04-01T10:00:00",
            "end_at": "2026-04-01T12:00:00",
        },
        timezone="Europe/Berlin",
    )
    fires = list(schedule.fires(NOW))
    assert [fire.local.hour for fire in fires] == [10, 11, 12]
    assert schedule.count(NOW, utc("2027-01-01")) == 3
    with pytest.raises(BadSchedule, match="end_at not before start_at"):
        parse(
            {"type": "cron", "expr": "* * * * *", "start_at": "2027-01-01", "end_at": "2026-01-01"}
        )
    with pytest.raises(NeverFires):
        parse(
            {"type": "cron", "expr": "0 0 1 1 *", "start_at": "2026-02-01", "end_at": "2026-03-01"}
        )


@pytest.mark.parametrize("number", [1, 3, 25_000])
def test_max_fires(number: int) -> None:
    """The first n fires from start_at, which is the creation when nothing is said."""
    schedule = parse({"type": "cron", "expr": "* * * * *", "max_fires": number}, now=NOW)

    assert schedule.count(utc("2020-01-01"), utc("2030-01-01")) == number
    assert schedule.to_dict()["start_at"] == "2026-03-28T12:00:00Z"
    assert Schedule.from_dict(schedule.to_dict()) == schedule
    with pytest.raises(BadSchedule, match="expected `start_at`"):
        parse({"type": "cron", "expr": "* * * * *", "max_fires": number})


def test_max_fires_beyond_the_end_changes_nothing() -> None:
    """A hundred fires of a yearly job that has only 174 years left is fine; a million too."""
    schedule = parse({"type": "cron", "expr": "0 0 1 1 *", "max_fires": 1_000_000}, now=NOW)
    assert schedule.count(NOW, utc("2199-12-31")) == 173


def test_union() -> None:
    """Members inherit the zone; equal instants merge; flags come from the member that fires."""
    schedule = parse(
        {
            "type": "union",
            "of": ["0 9 * * *", {"type": "cron", "expr": "0 9,17 * * *"}, "30 2 * * *"],
        },
        timezone="Europe/Berlin",
        now=NOW,
    )
    fires = list(schedule.fires(NOW, limit=4))

    assert [fire.local.strftime("%d %H:%M") for fire in fires] == [
        "28 17:00",
        "29 03:00",
        "29 09:00",
        "29 17:00",
    ]
    assert fires[1].flags == ("dst_gap_shifted",)
    assert schedule.intended(fires[1]) == "2026-03-29T02:30:00"
    assert schedule.count(NOW, utc("2026-03-30T00:00")) == 4
    assert "(cron: 0 9 * * * @ Europe/Berlin) | " in schedule.canonical
    assert fire_times("0 9 * * * | 0 9,17 * * *", "UTC", NOW, 3, kind="union")[0].hour == 17


def test_unions_are_bounded() -> None:
    """Width and depth have a maximum, fixed delays have no place in one."""
    wide = {"type": "union", "of": ["* * * * *"] * 33}
    deep: dict[str, object] = {"type": "cron", "expr": "* * * * *"}
    for _ in range(6):
        deep = {"type": "union", "of": [deep]}
    for source in (wide, deep):
        with pytest.raises(TooLarge):
            parse(source, now=NOW)
    with pytest.raises(BadSchedule, match="no fixed delay"):
        parse(
            {
                "type": "union",
                "of": [
                    {
                        "type": "interval",
                        "every": "1h",
                        "mode": "fixed_delay",
                        "anchor": "2026-01-01T00:00Z",
                    }
                ],
            }
        )
    for wrong in ({"type": "union"}, {"type": "union", "of": []}, {"type": "union", "of": [5]}):
        with pytest.raises(BadSchedule):
            parse(wrong, now=NOW)


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({}, "invalid_schedule", "/type"),
        ({"type": "sometimes"}, "invalid_schedule", "/type"),
        ({"type": ["cron"]}, "invalid_schedule", "/type"),
        ({"type": "cron"}, "invalid_schedule", "/expr"),
        ({"type": "cron", "expr": 5}, "invalid_schedule", "/expr"),
        ({"type": "cron", "expr": "* * * * *", "at": "x"}, "unknown_field", "/at"),
        ({"type": "cron", "expr": "* * * * *", "dialect": 5}, "invalid_schedule", "/dialect"),
        ({"type": "cron", "expr": "* * * * *", "timezone": 5}, "invalid_schedule", "/timezone"),
        ({"type": "cron", "expr": "* * * * *", "timezone": "X"}, "unknown_timezone", "/timezone"),
        ({"type": "cron", "expr": "* * * * *", "dst": "next"}, "invalid_schedule", "/dst"),
        (
            {"type": "cron", "expr": "* * * * *", "dst": {"gap": "x"}},
            "invalid_schedule",
            "/dst/gap",
        ),
        ({"type": "cron", "expr": "* * * * *", "dst": {"x": "y"}}, "invalid_schedule", "/dst"),
        ({"type": "cron", "expr": "* * * * *", "overlap": "x"}, "invalid_schedule", "/overlap"),
        ({"type": "cron", "expr": "* * * * *", "max_fires": 0}, "invalid_schedule", "/max_fires"),
        (
            {"type": "cron", "expr": "* * * * *", "max_fires": True},
            "invalid_schedule",
            "/max_fires",
        ),
        ({"type": "cron", "expr": "* * * * *", "jitter": "P1M"}, "invalid_schedule", "/jitter"),
        ({"type": "cron", "expr": "* * * * *", "jitter": "PT25H"}, "invalid_schedule", "/jitter"),
        ({"type": "cron", "expr": "* * * * *", "window": "P2D"}, "invalid_schedule", "/window"),
        ({"type": "cron", "expr": "* * * * *", "catchup": 5}, "invalid_schedule", "/catchup"),
        (
            {"type": "cron", "expr": "* * * * *", "catchup": {"policy": "x"}},
            "invalid_schedule",
            "/catchup/policy",
        ),
        (
            {"type": "cron", "expr": "* * * * *", "start_at": "soon"},
            "invalid_schedule",
            "/start_at",
        ),
        ({"type": "cron", "expr": "* * * * *", "start_at": 5}, "invalid_schedule", "/start_at"),
        ({"type": "once"}, "invalid_schedule", "/at"),
        ({"type": "once", "at": "2026-13-01"}, "invalid_schedule", "/at"),
        ({"type": "interval"}, "invalid_schedule", "/every"),
        ({"type": "interval", "every": "0s"}, "invalid_schedule", "/every"),
        ({"type": "interval", "every": "soon"}, "invalid_schedule", "/every"),
        ({"type": "delay"}, "invalid_schedule", "/after"),
        ({"type": "text"}, "invalid_schedule", "/expr"),
    ],
)
def test_wrong_members_are_named(members: dict[str, object], code: str, pointer: str) -> None:
    """Each refusal has a stable code and points at the member."""
    with pytest.raises(BadSchedule) as caught:
        parse(members, now=NOW)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_the_stored_form_is_plain_json() -> None:
    """Everything said is kept, nothing else is added, and JSON carries it."""
    members = {
        "type": "cron",
        "expr": "0 2 * * *",
        "dialect": "unix",
        "timezone": "Europe/Stockholm",
        "dst": {"gap": "skip", "overlap": "both"},
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2027-01-01T00:00:00",
        "max_fires": 5,
        "jitter": "PT5M",
        "window": "PT10M",
        "catchup": {"policy": "all", "window": "PT6H", "max": 7},
        "overlap": "buffer_one",
        "pause_after_failures": 3,
        "day_match": "and",
        "calendars": {
            "include": [],
            "exclude": [{"name": "h", "dates": ["2026-12-24/2026-12-26"], "weekdays": ["sun"]}],
            "roll": "next",
        },
    }
    schedule = parse(members)
    assert json.loads(json.dumps(schedule.to_dict())) == members
    assert Schedule.from_dict(members) == schedule
    assert schedule != parse("0 2 * * *")
    assert schedule != "0 2 * * *"


def test_unresolved_kinds_are_not_stored() -> None:
    """A delay or words must go through parse, which knows the creation time."""
    with pytest.raises(BadSchedule, match="resolved by parse"):
        Schedule.from_dict({"type": "delay", "after": "2h"})
    with pytest.raises(BadSchedule, match="object or as text"):
        parse(5)  # type: ignore[arg-type]


def test_keys_are_shared_by_equal_nominal_fires() -> None:
    """Policies about runs do not matter to a memo; the seed only where H is used."""
    plain = parse("0 2 * * *", seed="a")
    assert plain.key == parse({"type": "cron", "expr": "0 2 * * *", "jitter": "5m"}, seed="b").key
    assert plain.key != parse("0 3 * * *").key
    assert parse("H 2 * * *", seed="a").key != parse("H 2 * * *", seed="b").key
    assert hash(plain) == hash(parse("0 2 * * *", seed="a"))


def test_naive_datetimes_are_refused() -> None:
    """A moment without a zone is no moment."""
    with pytest.raises(BadSchedule, match="datetime with a time zone"):
        parse("0 2 * * *").next(NOW.replace(tzinfo=None))


def test_the_entry_point_refuses_unknown_kinds() -> None:
    """With the kinds there are."""
    with pytest.raises(BadSchedule, match="expected a kind out of"):
        fire_times("* * * * *", "UTC", NOW, 1, kind="solar")
    with pytest.raises(BadSchedule, match="cron fields"):
        fire_times("every 45 minutes", "UTC", NOW, 1)
    assert fire_times("* * * * *", "UTC", NOW, 0) == []
    assert fire_times("every PT1H", "UTC", NOW, 1, kind="auto") == [utc("2026-03-28T13:00")]
    assert fire_times("every 1h", "UTC", NOW, 1, kind="interval") == [utc("2026-03-28T13:00")]
    assert fire_times("every 45 minutes", "UTC", NOW, 1, kind="interval") == [
        utc("2026-03-28T12:45")
    ]
    assert fire_times("PT1H", "UTC", NOW, 1, kind="interval") == [utc("2026-03-28T13:00")]
    assert fire_times("@every 1h", "UTC", NOW, 1) == [utc("2026-03-28T13:00")]
    assert fire_times("cron(0 9 ? * 2 *)", "UTC", NOW, 1) == [utc("2026-03-30T09:00")]
    assert fire_times("2h", "UTC", NOW, 1, kind="delay") == [utc("2026-03-28T14:00")]
    assert fire_times("2026-03-28T14:00", "UTC", NOW, 5, kind="once") == [utc("2026-03-28T14:00")]


def test_manual_never_fires_by_itself() -> None:
    """And is not refused for it."""
    assert parse("manual").next(NOW) is None
    assert parse("manual").canonical == "manual"


def test_far_away_is_nothing() -> None:
    """Asking beyond our time finds nothing, before it finds the first."""
    schedule = parse("0 0 1 1 *")
    assert schedule.next(utc("2199-06-01")) is None
    assert schedule.next(utc("2500-01-01")) is None
    assert schedule.next(utc("1700-01-01")) is not None
