"""What is sent, what an answer means, and when a request may be repeated."""

import json
import socket
import ssl
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from betimes.domain.errors import BadSetting
from betimes.sdk import errors
from betimes.sdk.address import Address, read_address
from betimes.sdk.events import Event, EventReader
from betimes.sdk.exchange import Given, Manner, Request, Response, pause_after, request_of, value_of
from betimes.sdk.operation import Operation

MANNER = Manner(
    api_key="key",
    timeout=30.0,
    retry_for=60.0,
    agent="test",
    new_key=lambda: "fresh",
    roll=lambda: 0.5,
)
CREATE = Operation(name="x", method="POST", path="/v1/x/{id}", answers={201: dict}, keyed=True)
PLAIN = replace(CREATE, keyed=False)
READ = replace(PLAIN, method="GET")


def problem(status: int, code: str, *, retryable: bool, **headers: str) -> Response:
    told = {
        "type": "t",
        "title": "T",
        "status": status,
        "code": code,
        "detail": "d",
        "instance": "i",
        "request_id": "r",
        "retryable": retryable,
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, json.dumps(told).encode())


def a_request(operation: Operation, **given: Any) -> Request:
    return request_of(operation, Given(**given), MANNER)


def test_a_request_has_all_that_was_said_and_nothing_else() -> None:
    made = a_request(
        CREATE,
        path={"id": "a/b ö"},
        query={"limit": 2, "state": ["a", "b"], "flag": True, "left": msgspec.UNSET, "none": None},
        body={"name": "n", "left": msgspec.UNSET},
        if_match='"3"',
    )
    assert made.path == "/v1/x/a%2Fb%20%C3%B6?limit=2&state=a&state=b&flag=true"
    assert made.body == b'{"name":"n"}'
    assert made.headers["authorization"] == "Bearer key"
    assert made.headers["if-match"] == '"3"'
    assert (made.headers["idempotency-key"], made.repeatable) == ("fresh", True)


def test_a_key_is_made_only_where_it_counts() -> None:
    assert "idempotency-key" not in a_request(PLAIN).headers
    assert a_request(CREATE, idempotency_key="mine").headers["idempotency-key"] == "mine"
    assert (a_request(PLAIN).repeatable, a_request(READ).repeatable) == (False, True)


def test_an_answer_becomes_its_type_or_its_error() -> None:
    assert value_of(CREATE, Response(201, {}, b'{"a":1}')) == {"a": 1}
    assert value_of(replace(CREATE, answers={204: None}), Response(204)) is None
    with pytest.raises(errors.LeaseLost) as lost:
        value_of(CREATE, problem(409, "lease_lost", retryable=False))
    assert lost.value.problem.detail == "d"
    with pytest.raises(errors.RateLimited) as limited:
        value_of(CREATE, problem(429, "rate_limited", retryable=True, retry_after="7"))
    assert limited.value.retry_after == 7.0
    with pytest.raises(errors.ApiError, match="status 502") as strange:
        value_of(CREATE, Response(502, {}, b"<html>bad gateway"))
    assert strange.value.code == "unexpected"


GONE_UNSENT = errors.Unreachable("a", OSError("x"), sent=False)
GONE_SENT = errors.Unreachable("a", OSError("x"), sent=True)
BUSY = problem(503, "overloaded", retryable=True)
BROKEN = problem(500, "internal", retryable=True)
WRONG = problem(422, "invalid_schedule", retryable=False)


@pytest.mark.parametrize(
    ("operation", "failure", "repeats"),
    [
        (PLAIN, GONE_UNSENT, True),
        (PLAIN, GONE_SENT, False),
        (PLAIN, BUSY, True),
        (PLAIN, BROKEN, False),
        (CREATE, GONE_SENT, True),
        (CREATE, BROKEN, True),
        (READ, BROKEN, True),
        (READ, WRONG, False),
    ],
)
def test_only_what_is_safe_is_repeated(
    operation: Operation, failure: Response | errors.Unreachable, *, repeats: bool
) -> None:
    pause = pause_after(a_request(operation), failure, tried=1, spent=0.0, manner=MANNER)
    assert (pause is not None) == repeats
    over = pause_after(a_request(operation), failure, tried=3, spent=60.0, manner=MANNER)
    assert over is None


def test_pauses_grow_and_obey_the_server() -> None:
    def pause(failure: Response, *, tried: int = 1, spent: float = 0.0) -> float | None:
        return pause_after(a_request(READ), failure, tried=tried, spent=spent, manner=MANNER)

    assert [pause(BUSY, tried=tried) for tried in (1, 2, 3)] == [0.1, 0.2, 0.4]
    assert pause(BUSY, tried=100) == 2.5, "they do not grow for ever"
    told = problem(503, "overloaded", retryable=True, retry_after="4")
    assert pause(told) == 4.0
    assert pause(BUSY, tried=100, spent=59.0) == 1.0, "the last try is at the very end"
    assert pause(told, spent=57.0) is None, "the server wants to be left alone for longer"


@pytest.mark.parametrize(
    ("fault", "lasting"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), True),
        (socket.gaierror(socket.EAI_AGAIN, "not now"), False),
        (ssl.SSLCertVerificationError("not trusted"), True),
        (ConnectionRefusedError(), False),
        (TimeoutError(), False),
    ],
)
def test_what_does_not_change_is_not_asked_again(fault: OSError, *, lasting: bool) -> None:
    lost = errors.Unreachable("http://x", fault, sent=False)
    pause = pause_after(a_request(READ), lost, tried=1, spent=0.0, manner=MANNER)
    assert (pause is None) == lasting


def test_addresses() -> None:
    assert read_address("https://h.example/x/") == Address(
        "https://h.example/x", "h.example", 443, True, "/x"
    )
    for bad in ("ftp://h", "h:80", "http://", "http://u:p@h", "http://h:x", "http://h?q"):
        with pytest.raises(BadSetting):
            read_address(bad)


def test_events_line_by_line() -> None:
    reader = EventReader()
    lines = [b"id: 7\n", b"event: run.dead\n", b'data: {"a":\n', b"data: 1}\n", b": note\n"]
    assert [reader.feed(line) for line in lines] == [None] * 5
    assert reader.feed(b"\n") == Event("7", "run.dead", {"a": 1})
    assert reader.feed(b"\n") is None
    reader.feed(b"data: plain")
    assert reader.feed(b"\r\n") == Event("7", "message", "plain")
