"""Shorter ways to say what an operation takes."""

import click
import pytest

from betimes.cli.also import hours, meant, rate
from betimes.cli.build import command, spelt_of
from betimes.cli.surface import OFFERS
from betimes.cli.tree import ALONE, NOUNS

BULK = next(verb for verb in NOUNS["dead"].verbs if verb.name == "bulk")
DEAD, FORECAST, JOBS = (
    OFFERS[name] for name in ("dead_letters.bulk", "forecast.read", "jobs.bulk")
)


def test_an_action_may_be_a_flag() -> None:
    assert spelt_of(BULK, DEAD) == {"--redrive": "redrive", "--discard": "discard"}
    made = command(BULK, NOUNS["dead"], "dead")
    context = made.make_context(
        "bulk",
        ["--filter", "handler:charge since:2h", "--redrive", "--rate", "20/s", "--dry-run"],
    )
    said = meant("dead_letters.bulk", DEAD, context.params)
    assert said["said_action"] == "redrive"
    assert said["said_filter_q"] == "handler:charge since:2h", "the service reads it"
    assert said["said_rate_per_second"] == 20.0
    assert not any(name.startswith("also_") for name in said)


def test_hours_ahead_and_by_what() -> None:
    made = command(ALONE["forecast"], None, "")
    context = made.make_context("forecast", ["--hours", "24", "--by", "queue"])
    said = meant("forecast.read", FORECAST, context.params)
    assert (said["said_to"], said["said_group_by"]) == ("24h", "queue")


@pytest.mark.parametrize(
    ("text", "found"), [("20/s", 20.0), ("600/m", 10.0), ("7200/h", 2.0), ("0.5", 0.5)]
)
def test_rates(text: str, found: float) -> None:
    assert rate(text) == found


@pytest.mark.parametrize("text", ["", "often", "20/d", "-1", "1h"])
def test_what_is_no_rate_and_no_number_of_hours(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a rate"):
        rate(text)
    with pytest.raises(click.BadParameter, match="expected a number of hours"):
        hours(text)


def test_a_filter_without_a_line_of_its_own_is_taken_apart_here() -> None:
    said = meant("jobs.bulk", JOBS, {"also_filter": "group:night name_prefix:a-"})
    assert (said["said_filter_group"], said["said_filter_name_prefix"]) == ("night", "a-")
    with pytest.raises(click.BadParameter, match="in --filter, got 'error:Timeout'"):
        meant("jobs.bulk", JOBS, {"also_filter": "error:Timeout"})
    given = {"also_filter": "group:a", "said_filter_group": "b"}
    with pytest.raises(click.UsageError, match="--filter and --group say the same"):
        meant("jobs.bulk", JOBS, given)
