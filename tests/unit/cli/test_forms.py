"""Every output form, kept word for word."""

import csv
import io
import json
from typing import Any

import pytest
import yaml

from betimes.cli.build import look_of
from betimes.cli.forms import Answer, answer_of, picked, text_of
from betimes.cli.looks import Eye, column, sheet
from betimes.cli.times import zone_of
from betimes.cli.tree import NOUNS
from betimes.cli.wishes import FORMS
from cli_kit import NOW, golden, samples

EYE = Eye(now=NOW, zone=zone_of("Europe/Stockholm"))


def shown(noun: str, form: str, eye: Eye = EYE, **wish: str) -> str:
    kind = NOUNS[noun]
    look = look_of(next(verb for verb in kind.verbs if verb.name == "list"), kind, noun)
    answer = picked(answer_of(samples()[noun]), query=wish.get("query"), fields=wish.get("fields"))
    return text_of(answer, form, look, eye, chosen=bool(wish))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noun", ["job", "run", "queue"])
def test_every_form_of_every_list(noun: str, form: str) -> None:
    golden(f"forms/{noun}.{form}", shown(noun, form))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_one_thing(form: str) -> None:
    text = text_of(Answer(samples()["job"][0]), form, look_of_jobs(), EYE)
    golden(f"forms/one-job.{form}", text)


def look_of_jobs() -> Any:
    return look_of(NOUNS["job"].verbs[2], NOUNS["job"], "job")


def test_programs_read_back_what_was_printed() -> None:
    jobs = samples()["job"]
    assert json.loads(shown("job", "json")) == jobs
    assert yaml.safe_load(shown("job", "yaml")) == jobs
    assert [json.loads(line) for line in shown("job", "jsonl").splitlines()] == jobs
    rows = list(csv.DictReader(io.StringIO(shown("job", "csv"))))
    assert [row["id"] for row in rows] == [job["id"] for job in jobs]


def test_a_name_says_what_one_would_type() -> None:
    assert shown("job", "name").splitlines() == [
        "job/nightly-report",
        "job/night~=HYPERLINK(1)\x1b[31m",
        "job/job_01M7HQQHNDG0ARZ0KK7SFEK5B4",
    ]


def test_what_others_wrote_cannot_paint_the_terminal_or_be_a_formula() -> None:
    for form in ("table", "wide"):
        assert "\x1b" not in shown("job", form)
    assert "\x1b" not in sheet(samples()["job"][1], EYE)
    assert ",'=grüße," in shown("job", "csv")
    assert len(shown("run", "table").splitlines()) == 3, "an error of two lines is one row"


def test_colours_only_for_eyes_that_see_them() -> None:
    eye = Eye(now=NOW, zone=EYE.zone, colours=True)
    painted = shown("run", "table", eye)
    assert "\x1b[31mdead\x1b[0m" in painted
    assert "\x1b[32msucceeded\x1b[0m" in painted
    assert "\x1b" not in shown("run", "json", eye)
    assert "\x1b" not in shown("run", "csv", eye)


def test_tables_without_headers() -> None:
    eye = Eye(now=NOW, zone=EYE.zone, headers=False)
    assert shown("run", "table", eye).startswith("run_01M7HR1050G0G9DHBKJYBA8JSE")
    assert shown("queue", "table", eye) == ""
    assert shown("run", "csv", eye).startswith("run_01M7HR1050G0G9DHBKJYBA8JSE,")


def test_a_query_picks_and_a_form_shows_what_is_left() -> None:
    assert shown("run", "json", query="[?attempt > `1`].id") == (
        '[\n  "run_01M7HR0V8RG0GAAAZ2T0DPY7QE"\n]\n'
    )
    assert shown("run", "table", query="[].id").splitlines() == [
        run["id"] for run in samples()["run"]
    ]
    assert shown("run", "table", query="length(@)") == "2\n"
    assert shown("run", "table", query="[].{id: id, took: run_ms}").splitlines()[0] == (
        "ID                               TOOK"
    )


def test_fields_choose_members_and_their_order() -> None:
    assert shown("job", "csv", fields="status.state,name").splitlines()[:2] == [
        "status.state,name",
        "active,nightly-report",
    ]


def test_a_column_is_read_from_its_text() -> None:
    assert column("NEXT=status.next_fire_at:when") == ("NEXT", "status.next_fire_at", "when")
    assert column("ID=id") == ("ID", "id", "text")
