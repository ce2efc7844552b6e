"""`betimes next` and `betimes explain`, as people type them."""

import json

from click.testing import CliRunner, Result

from betimes.cli.main import root


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


def test_next_shows_the_gap() -> None:
    """The example of the documentation, letter by letter."""
    found = run("next", "0 2 * * *", "--tz", "Europe/Stockholm", "-n", "3", "--from", "2026-03-28")
    assert found.exit_code == 0
    assert found.output == (
        "Every day at 02:00 (Europe/Stockholm)\n"
        "  Sat 28 Mar 2026 02:00 +01:00   01:00Z\n"
        "  Sun 29 Mar 2026 03:00 +02:00   01:00Z   "
        "! 02:00 does not exist that day (clock jumps); moved to 03:00\n"
        "  Mon 30 Mar 2026 02:00 +02:00   00:00Z\n"
    )


def test_next_shows_both_passes() -> None:
    """An hourly job runs in both, and says which is which."""
    found = run(
        "next", "30 * * * *", "--tz", "Europe/Berlin", "-n", "2", "--from", "2026-10-25T02:00"
    )
    assert "02:30 +02:00   00:30Z   ! 02:30 comes twice that day; this is the first" in found.output
    assert (
        "02:30 +01:00   01:30Z   ! 02:30 comes twice that day; this is the second" in found.output
    )


def test_next_as_json() -> None:
    """The same shape as the preview endpoint."""
    found = run("next", "0 2 * * *", "-n", "2", "--from", "2026-03-28", "-o", "json")
    shown = json.loads(found.output)
    assert [entry["utc"] for entry in shown["occurrences"]] == [
        "2026-03-28T02:00:00Z",
        "2026-03-29T02:00:00Z",
    ]


def test_policies_dialects_and_seeds() -> None:
    """Every option reaches the schedule."""
    skipped = run(
        "next",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "--gap",
        "skip",
        "-n",
        "1",
        "--from",
        "2026-03-29",
    )
    both = run(
        "next",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "--overlap",
        "both",
        "-n",
        "2",
        "--from",
        "2026-10-25",
    )
    quartz = run("next", "0 0 0 ? * 2", "--dialect", "quartz", "-n", "1", "--from", "2026-01-01")
    hashed = run("next", "H H * * *", "--seed", "job_1", "-n", "1", "--from", "2026-01-01")

    assert "Mon 30 Mar 2026 02:30" in skipped.output
    assert both.output.count("Sun 25 Oct 2026 02:30") == 2
    assert "Mon 05 Jan 2026 00:00" in quartz.output
    assert "Thu 01 Jan 2026 06:29" in hashed.output


def test_now_is_the_default() -> None:
    """Without --from, the clock of the machine decides."""
    assert run("next", "* * * * *", "-n", "2").output.count("Z\n") == 2


def test_nothing_left() -> None:
    """A past moment says so."""
    found = run("next", "2020-01-01T00:00Z", "--from", "2026-01-01")
    assert "never again" in found.output


def test_refusals_are_usage_errors() -> None:
    """Exit code 2 and the sentence on stderr."""
    for wrong in (["0 24 * * *"], ["* * * * *", "--tz", "Mars"], ["* * * * *", "--from", "soon"]):
        found = run("next", *wrong)
        assert found.exit_code == 2
        assert "expected" in found.output


def test_explain() -> None:
    """Meaning, canonical form, next fires and warnings."""
    found = run("explain", "0 0 13 * 5", "--from", "2026-01-01")
    assert "On day 13 of the month or on Friday at 00:00 (UTC)" in found.output
    assert "Read as   cron: 0 0 13 * 5 @ UTC" in found.output
    assert "! day_fields_both_set" in found.output
    shown = json.loads(run("explain", "every weekday at 9:30", "-o", "json").output)
    assert shown["schedule"]["expr"] == "30 9 * * MON-FRI"
    gap = run("explain", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-01")
    assert "! dst_gap (2026-03-29T01:00:00Z)" in gap.output


def test_seconds_and_rolls_are_shown() -> None:
    """Seconds where there are any."""
    found = run("next", "30 0 12 * * *", "-n", "1", "--from", "2026-01-01")
    assert "12:00:30 +00:00   12:00:30Z" in found.output
