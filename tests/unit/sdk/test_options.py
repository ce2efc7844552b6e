"""Options as users write them, and as the API reads them."""

from datetime import UTC, datetime, timedelta

import pytest

from betimes import App, Retry, Snooze
from betimes.domain.errors import Invalid
from betimes.sdk.options import instant, plain, seconds_of

app = App("http://127.0.0.1:1", "key", name="options")


@app.task(queue="mail", timeout=timedelta(minutes=2), retry={"max_attempts": 8, "initial": "5s"})
def remind(user: int) -> None:
    """A reminder."""


def test_options_of_the_call_come_before_those_of_the_task() -> None:
    body = remind.configure(delay="3 days", dedupe_key="trial-7", priority=9).prepare(7).body()
    assert body["handler"] == "remind"
    assert (body["queue"], body["timeout"], body["delay"]) == ("mail", 120.0, "3 days")
    assert (body["dedupe_key"], body["priority"]) == ("trial-7", 9)
    assert body["retry"] == {"max_attempts": 8, "initial": "5s"}
    again = remind.configure(queue="a").configure(queue="b", idempotency_key="k").prepare(7)
    assert (again.members["queue"], again.idempotency_key) == ("b", "k")


def test_local_times_are_read_in_their_zone() -> None:
    assert instant("2026-12-24T15:00", "Europe/Stockholm") == "2026-12-24T15:00:00+01:00"
    assert instant("2026-07-24T15:00", "Europe/Stockholm") == "2026-07-24T15:00:00+02:00"
    assert instant(datetime(2026, 1, 1, tzinfo=UTC), None) == "2026-01-01T00:00:00+00:00"
    # Of a time that comes twice, the first is meant.
    assert instant("2026-10-25T02:30", "Europe/Stockholm").endswith("+02:00")


@pytest.mark.parametrize(
    ("at", "zone", "told"),
    [
        ("2026-03-29T02:30", "Europe/Stockholm", "is skipped"),
        ("2026-12-24T15:00", None, "an offset"),
        ("2026-12-24T15:00", "Europe/Nowhere", "time zone"),
        ("tomorrow", None, "such as"),
    ],
)
def test_times_that_mean_nothing_are_refused(at: str, zone: str | None, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        instant(at, zone)


def test_durations_become_seconds() -> None:
    nested = {"delays": [timedelta(seconds=1), "2m"], "max": timedelta(hours=1)}
    assert plain(nested) == {"delays": [1.0, "2m"], "max": 3600.0}
    assert [seconds_of(one) for one in (timedelta(minutes=1), 2, 2.5, "90s", "PT2M")] == [
        60.0,
        2.0,
        2.5,
        90.0,
        120.0,
    ]


def test_control_exceptions_say_what_they_need() -> None:
    assert Retry(after="5m").after == "5m"
    assert Snooze(until=datetime(2026, 1, 1, tzinfo=UTC)).until is not None
    with pytest.raises(TypeError, match="one of them"):
        Snooze()
    with pytest.raises(ValueError, match="offset"):
        Snooze(until=datetime(2026, 1, 1))  # noqa: DTZ001 -- that is the point


def test_next_needs_no_server() -> None:
    @app.task(schedule="0 2 * * *", timezone="Europe/Stockholm", dst={"gap": "next"})
    def nightly() -> None:
        """Every night."""

    fires = nightly.next(400)
    assert len(fires) == 400
    assert {fire.utc.tzinfo for fire in fires} == {UTC}
    assert {"dst_gap_shifted"} <= {flag for fire in fires for flag in fire.flags}
    with pytest.raises(ValueError, match="has none"):
        remind.next()
