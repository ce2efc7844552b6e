"""What differs between two definitions, and what is told of it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from betimes.api.revising import changes, shown_revisions
from betimes.domain.ids import JobId, TenantId
from betimes.domain.job import Definition, Job
from betimes.domain.states import JobState
from betimes.ops.read import Kept

THEN = datetime(2026, 1, 1, tzinfo=UTC)
SCHEDULE = {"type": "interval", "every": "PT1H"}


def told(old: Any, new: Any) -> list[tuple[Any, ...]]:
    found = [msgspec.to_builtins(one) for one in changes(old, new)]
    return [(one["op"], one["path"], one.get("old"), one.get("new")) for one in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("replace", "/a", 1, 2)]),
        ({"a": 1}, {"a": True}, [("replace", "/a", 1, True)]),
        ({}, {"a": None}, [("add", "/a", None, None)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [("remove", "/a/c", 2, None)]),
        ({"a": {"b": 1}}, {"a": [1]}, [("replace", "/a", {"b": 1}, [1])]),
        ({"a": [1, 2]}, {"a": [2]}, [("replace", "/a", [1, 2], [2])]),
        ({"x/y": {"a~b": 1}}, {"x/y": {"a~b": 2}}, [("replace", "/x~1y/a~0b", 1, 2)]),
        ({"b": 1, "a": 1}, {"c": 1}, [
            ("remove", "/a", 1, None), ("remove", "/b", 1, None), ("add", "/c", None, 1),
        ]),
    ],
)  # fmt: skip
def test_what_differs(old: Any, new: Any, expected: list[Any]) -> None:
    assert told(old, new) == expected


def test_what_is_absent_is_not_null() -> None:
    (added,) = changes({}, {"a": None})
    assert msgspec.to_builtins(added) == {"op": "add", "path": "/a", "new": None, "hidden": False}


def job(revision: int, definition: Definition) -> Job:
    return Job(
        id=JobId(UUID(int=1)),
        tenant=TenantId(UUID(int=2)),
        group="default",
        name="n",
        definition=definition,
        state=JobState.ACTIVE,
        revision=revision,
        fires=0,
        next_fire_at=None,
        paused_until=None,
        created_at=THEN,
        updated_at=THEN,
        tzdata="2026a",
        created_by="maker",
    )


def kept(revision: int, definition: Definition, by: str | None = "editor") -> Kept:
    at = THEN + timedelta(days=revision)
    return Kept(revision=revision, replaced_at=at, replaced_by=by, definition=definition)


def request(url: str, word: str, payload: bytes | None = None) -> Definition:
    target = {"type": "http", "url": url, "headers": {"authorization": word}, "body": word}
    return Definition(schedule=SCHEDULE, target=target, payload=payload)


def test_contents_are_hidden_wherever_they_lie() -> None:
    now = job(2, request("https://b.example", "new", b'{"secret": {"name": 2}}'))
    before = [kept(1, request("https://a.example", "old", b'{"secret": {"name": 1}}'))]
    newest, _ = shown_revisions(now, before)
    assert "'old'" not in str(newest)
    assert "'new'" not in str(newest)
    assert "secret" not in str(newest)
    assert newest.diff is not None
    hidden = {one.path: one.hidden for one in newest.diff}
    assert hidden == {
        "/payload": True,
        "/target/body": True,
        "/target/headers": True,
        "/target/url": False,
    }
    whole, _ = shown_revisions(now, before, full=True)
    assert whole.diff is not None
    assert {one.path: (one.old, one.new) for one in whole.diff} == {
        "/payload/secret/name": (1, 2),
        "/target/body": ("old", "new"),
        "/target/headers/authorization": ("old", "new"),
        "/target/url": ("https://a.example", "https://b.example"),
    }


def test_a_revision_whose_predecessor_is_gone_claims_nothing() -> None:
    plain = Definition(schedule=SCHEDULE)
    newest, oldest = shown_revisions(job(9, plain), [kept(8, plain)])
    assert (newest.author, newest.diff) == ("editor", [])
    assert (oldest.author, oldest.made_at, oldest.diff) == (None, None, None)


def test_an_edit_that_comes_while_it_is_read_is_not_told_twice() -> None:
    plain = Definition(schedule=SCHEDULE)
    found = list(shown_revisions(job(1, plain), [kept(1, plain)]))
    assert [(one.revision, one.current, one.author) for one in found] == [(1, True, "maker")]
