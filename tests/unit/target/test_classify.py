"""What answers mean."""

from datetime import UTC, datetime, timedelta

import pytest

from betimes.target.classify import StatusRange, Verdict, classify, retry_after

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_every_status_has_a_verdict() -> None:
    """The table of the interface, whole."""
    found: dict[Verdict, list[int]] = {}
    for status in range(100, 600):
        found.setdefault(classify(status), []).append(status)
    assert found[Verdict.SUCCESS] == list(range(200, 300))
    assert found[Verdict.RETRY] == [408, 425, 429, *range(500, 600)]
    assert found[Verdict.GONE] == [410]
    assert Verdict.WAIT not in found
    assert set(found[Verdict.PERMANENT]) == {
        *range(100, 200),
        *range(300, 408),
        409,
        *range(411, 425),
        *range(426, 429),
        *range(430, 500),
    }


def test_success_codes_replace_the_usual_ones() -> None:
    """What is listed is a success, whatever it is; what is not, is not."""
    codes = (StatusRange(200, 200), StatusRange(404, 404), StatusRange(410, 410))
    assert classify(404, success_codes=codes) is Verdict.SUCCESS
    assert classify(410, success_codes=codes) is Verdict.SUCCESS
    assert classify(201, success_codes=codes) is Verdict.PERMANENT
    assert classify(500, success_codes=codes) is Verdict.RETRY


def test_accepted_waits_only_when_the_target_says_so() -> None:
    """202 alone is a success."""
    assert classify(202) is Verdict.SUCCESS
    assert classify(202, is_async=True) is Verdict.WAIT
    assert classify(200, is_async=True) is Verdict.SUCCESS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("9999999999", 86_400),
        ("99999999999", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 11:59:30 GMT", 0),
        ("Sun, 01 Mar 2026 12:00:30", 30),
        ("Sun, 01 Mar 2199 12:00:30 GMT", 86_400),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
    ],
)
def test_retry_after_is_read_both_ways(value: str | None, seconds: int | None) -> None:
    """Seconds or a date, never negative, never longer than a day."""
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert retry_after(value, NOW) == expected
