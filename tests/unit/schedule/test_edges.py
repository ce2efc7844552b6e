"""First and last members of ranges, to the second: where a wrong `<` would hide."""

from datetime import timedelta

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule import Catchup, Schedule, fire_times, plan_catchup
from betimes.schedule.cron import read_cron
from betimes.schedule.moment import to_instant
from facts_kit import days, parse, utc

BERLIN = "Europe/Berlin"
YEAR = utc("2026-01-01"), utc("2027-01-01")
EVERY_SECOND_OF_TWO = "0-59 0-59 1-3 * * *"


def dense(**dst: str) -> Schedule:
    return parse(EVERY_SECOND_OF_TWO, timezone=BERLIN, dst=dst)


def test_the_skipped_hour_is_exactly_an_hour() -> None:
    """02:00:00 and 02:59:59 are lost, 01:59:59 and 03:00:00 are not."""
    lost = [drop for drop in dense(gap="skip").dropped(*YEAR) if drop.code == "DST_GAP_SKIPPED"]

    assert len(lost) == 3600
    assert (lost[0].local, lost[-1].local) == ("2026-03-29T02:00:00", "2026-03-29T02:59:59")
    assert lost[0].nominal == utc("2026-03-29T01:00")


@pytest.mark.parametrize(
    ("overlap", "first", "last"),
    [
        ("first", "2026-10-25T01:00:00", "2026-10-25T01:59:59"),
        ("second", "2026-10-25T00:00:00", "2026-10-25T00:59:59"),
    ],
)
def test_the_merged_hour_is_exactly_an_hour(overlap: str, first: str, last: str) -> None:
    """The pass that is not taken, from its first second to its last."""
    schedule = dense(overlap=overlap)
    lost = [d for d in schedule.dropped(*YEAR, limit=10_000) if d.code == "DST_OVERLAP_MERGED"]

    assert len(lost) == 3600
    assert (lost[0].nominal, lost[-1].nominal) == (utc(first), utc(last))
    assert (lost[0].local, lost[-1].local) == ("2026-10-25T02:00:00", "2026-10-25T02:59:59")
    assert dense(overlap="both").dropped(utc("2026-10-01"), utc("2026-11-01")) == []


def test_drops_lie_after_the_one_and_through_the_other() -> None:
    """The span of a question is open at its beginning and closed at its end."""
    lost = utc("2026-03-29T01:30")
    for source in ("30 2 * * *", "every P1D from 2026-03-01T02:30"):
        schedule = parse(source, timezone=BERLIN, dst={"gap": "skip"})
        assert [d.nominal for d in schedule.dropped(utc("2026-03-01"), lost)] == [lost]
        assert schedule.dropped(lost, utc("2026-03-31")) == []
        assert schedule.dropped(utc("2026-03-01"), utc("2026-03-29T01:29:59")) == []


def test_what_was_meant_is_the_first_time_in_the_gap() -> None:
    """Of many, the first; shifted ones each know their own."""
    caught = parse("0,30 2 * * *", timezone=BERLIN)
    fire = caught.next(utc("2026-03-28T12:00"))
    assert fire is not None
    assert caught.intended(fire) == "2026-03-29T02:00:00"
    shifted = parse("0,30 2 * * *", timezone=BERLIN, dst={"gap": "shift"})
    meant = [shifted.intended(f) for f in shifted.fires(utc("2026-03-28T12:00"), limit=2)]
    assert meant == ["2026-03-29T02:00:00", "2026-03-29T02:30:00"]


def test_flags_at_the_very_edges() -> None:
    """The repeated hour begins and ends on the second."""
    schedule = dense(overlap="both")
    start = utc("2026-10-24T23:59:58")
    flags = {f.nominal: f.flags for f in schedule.fires(start, limit=7300)}

    assert flags[utc("2026-10-24T23:59:59")] == ()
    assert flags[utc("2026-10-25T00:00:00")] == ("dst_overlap_first",)
    assert flags[utc("2026-10-25T00:59:59")] == ("dst_overlap_first",)
    assert flags[utc("2026-10-25T01:00:00")] == ("dst_overlap_second",)
    assert flags[utc("2026-10-25T01:59:59")] == ("dst_overlap_second",)
    assert flags[utc("2026-10-25T02:00:00")] == ()


def test_nearest_weekday_of_the_second() -> None:
    """Saturday 2 May 2026 moves to Friday the 1st: it stays in its month."""
    assert days("0 0 2W 5 *", "2026-01-01T00:00", 1) == ["2026-05-01"]
    assert days("0 0 30W 5 *", "2026-01-01T00:00", 1) == ["2026-05-29"]


def test_hashed_ranges_of_one_and_long_steps() -> None:
    """A range of one value is that value; a step longer than its range picks one value in it."""
    assert read_cron("H(5-5) * * * *").minutes == 1 << 5
    for number in range(30):
        seed = f"job_{number}"
        picked = read_cron("H(10-19)/20 * * * *", seed=seed).minutes
        assert picked.bit_count() == 1
        assert 1 << 10 <= picked < 1 << 20
        every_second = read_cron("H(10-13)/4 * * * *", seed=seed).minutes
        assert every_second.bit_count() == 1
    spread = {read_cron("H(10-13)/4 * * * *", seed=f"job_{n}").minutes for n in range(60)}
    assert spread == {1 << minute for minute in range(10, 14)}


def test_rates_end_where_they_should() -> None:
    """Three repetitions are three, however they are asked for; nothing fires after 2199."""
    three = parse("R3/2026-01-01T00:00:00Z/PT1H")
    whole = to_instant(utc("2025-01-01")), to_instant(utc("2030-01-01"))
    hour = 3_600_000_000

    assert three.instants(*whole, 10) == [whole[0] + 8760 * hour + k * hour for k in range(3)]
    assert len(three.instants(*whole, 2)) == 2
    assert three.count(utc("2025-01-01"), utc("2030-01-01")) == 3
    assert three.count(utc("2026-01-01"), utc("2026-01-01T02:00")) == 2
    assert three.count(utc("2026-01-02"), utc("2030-01-01")) == 0
    endless = parse("every PT1H from 2026-01-01T00:30:00Z")
    last = list(endless.fires(utc("2199-12-31T22:00"), limit=10))
    assert [fire.nominal for fire in last] == [
        utc("2199-12-31T22:30"),
        utc("2199-12-31T23:30"),
    ]
    on_the_end = parse("every PT1H from 2026-01-01T00:00:00Z")
    assert on_the_end.next(utc("2199-12-31T23:00")) is None


def test_a_period_ends_with_our_time() -> None:
    """The last month, skipped or clamped, is still there."""
    for policy in ("clamp", "skip"):
        schedule = parse(
            {"type": "interval", "every": "P1M", "anchor": "2026-01-31T00:00Z", "month_end": policy}
        )
        found = fire_months(schedule)
        assert found == (["11-30", "12-31"] if policy == "clamp" else ["12-31"])


def fire_months(schedule: Schedule) -> list[str]:
    return [f.nominal.strftime("%m-%d") for f in schedule.fires(utc("2199-11-15"), limit=9)]


def test_refusals_are_whole_sentences() -> None:
    """Letter by letter, the ones people meet most."""
    sentences = {
        "every 500ms": "expected a period of at least 1 s, got 0.5 s",
        "0 22-2 * * *": 'expected a range that does not run backwards in cron field "hour", '
        "got '22-2'",
        "0 0 * * XYZ": "expected a number or one of SUN, MON, TUE, WED, THU, FRI, SAT in cron "
        "field \"weekday\", got 'XYZ'",
        "ABC * * * *": "expected a number in cron field \"minute\", got 'ABC'",
        "@reboot": "expected one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, "
        "@hourly or @every, got '@reboot'; a job cannot be bound to the start of a machine",
        "@fortnightly": "expected one of @yearly, @annually, @monthly, @weekly, @daily, "
        "@midnight, @hourly or @every, got '@fortnightly'",
    }
    for source, sentence in sentences.items():
        kind = {} if source.startswith("every") else {"type": "cron", "expr": source}
        with pytest.raises(BadSchedule) as caught:
            parse(kind or source, now=YEAR[0])
        assert caught.value.sentence == sentence
        assert caught.value.pointer == ("/every" if source.startswith("every") else "/expr")


def test_a_question_mark_is_demanded_in_a_sentence() -> None:
    """With what stood in both fields."""
    with pytest.raises(BadSchedule) as caught:
        parse({"type": "cron", "expr": "0 0 0 1 * MON", "dialect": "quartz"})
    assert caught.value.sentence == (
        "expected `?` in exactly one of the day-of-month and day-of-week fields, got '1' and 'MON'"
    )
    assert caught.value.pointer == "/expr"


def test_the_first_instant_after_a_gap_is_not_fired_twice() -> None:
    """Asked from the very instant, the gap's catch-up lies behind."""
    assert fire_times("30 2 * * *", BERLIN, utc("2026-03-29T01:00"), 1) == [utc("2026-03-30T00:30")]
    assert fire_times("30 2 * * *", BERLIN, utc("2026-03-29T00:59:59"), 1) == [
        utc("2026-03-29T01:00")
    ]


def test_shifts_for_good_know_both_their_offsets() -> None:
    """Where the clock does not swing back, the segment after is no copy of the one before."""
    for gap in ("next", "shift"):
        schedule = parse("45 2 * * *", timezone="America/Caracas", dst={"gap": gap})
        fire = schedule.next(utc("2016-04-30T12:00"))
        assert fire is not None
        assert schedule.intended(fire) == "2016-05-01T02:45:00"
    merged = parse("45 23 * * *", timezone="Asia/Pyongyang")
    lost = merged.dropped(utc("2015-08-01"), utc("2015-09-01"))
    assert [(drop.local, drop.nominal) for drop in lost] == [
        ("2015-08-14T23:45:00", utc("2015-08-14T15:15"))
    ]


def test_the_farthest_day_before_the_last() -> None:
    """L-30 is the first of a month with 31 days, and nothing in the others."""
    assert days("0 0 0 L-30 * ?", "2026-01-02T00:00", 2, "quartz") == ["2026-03-01", "2026-05-01"]


def test_grace_is_measured_to_the_microsecond() -> None:
    """A fire exactly as old as the grace has just left it."""
    schedule = parse("0 * * * *")
    for micros, runs in ((10_000_001, 1), (10_000_000, 0)):
        plan = plan_catchup(
            schedule,
            utc("2026-01-01T00:30"),
            utc("2026-01-01T01:00:10"),
            Catchup("none"),
            grace=timedelta(microseconds=micros),
        )
        assert len(plan.runs) == runs
        assert sum(gap.count for gap in plan.skipped) == 1 - runs


def test_a_single_fire_at_the_edge_is_recorded() -> None:
    """The last instant of a range belongs to it."""
    plan = plan_catchup(
        parse("0 * * * *"), utc("2026-01-01T00:30"), utc("2026-01-01T01:00"), Catchup("none")
    )
    assert [(gap.first, gap.count) for gap in plan.skipped] == [(utc("2026-01-01T01:00"), 1)]
