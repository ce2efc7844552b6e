"""What evidence leaves out."""

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from betimes.target.answer import Answer, NoAnswer, Timings, Trouble
from betimes.target.evidence import evidence_of
from betimes.target.redact import HIDDEN, Redaction, Veil

CANARY = 'can"ary 5b8e/2f=91'


def answer(body: bytes, *, truncated: bool = False, **headers: str) -> Answer:
    return Answer(
        status=200,
        headers=[(name.replace("_", "-"), value) for name, value in headers.items()],
        body=body,
        truncated=truncated,
        address="127.0.0.1",
        reused=False,
        timings=Timings(),
    )


@pytest.mark.parametrize(
    ("path", "value", "left"),
    [
        ("/card/number", {"card": {"number": 1, "x": 2}}, {"card": {"number": HIDDEN, "x": 2}}),
        ("/a/*/t", {"a": [{"t": 1}, {"b": 2}]}, {"a": [{"t": HIDDEN}, {"b": 2}]}),
        ("/*/b", {"a": {"b": 1}, "c": {"b": 2}}, {"a": {"b": HIDDEN}, "c": {"b": HIDDEN}}),
        ("/1", [1, 2], [1, HIDDEN]),
        ("/a~1b/c~0d", {"a/b": {"c~d": 1}}, {"a/b": {"c~d": HIDDEN}}),
        ("/card", {"card": {"number": 1}}, {"card": HIDDEN}),
    ],
)
def test_members_are_hidden_by_path(path: str, value: Any, left: Any) -> None:
    before = json.dumps(value)
    assert Redaction().and_also((), [path]).json(value) == left
    assert json.dumps(value) == before, "what was given stays as it is"


@pytest.mark.parametrize("path", ["/other", "/card/number/deeper", "/9", "card", "/", ""])
def test_what_is_not_there_is_not_hidden(path: str) -> None:
    value = {"card": {"number": 1}}
    assert Redaction().and_also((), [path]).json(value) is value


def test_headers_are_hidden_by_name() -> None:
    redaction = Redaction().and_also(["X-Session"], [])
    told = json.loads(
        evidence_of(
            answer(b"ok", set_cookie="a", x_session="b", x_plain="c"), url="u", redaction=redaction
        )
    )
    assert told["headers"] == {"set-cookie": HIDDEN, "x-session": HIDDEN, "x-plain": "c"}


@pytest.mark.parametrize("body", [b'{"card": 1', b"[1, 2", b'{"a": "\xff"}', b"[" * 16_000])
def test_a_body_that_cannot_be_searched_is_not_kept(body: bytes) -> None:
    """When there is something to search for."""
    redaction = Redaction().and_also((), ["/card"])
    assert redaction.body(body, truncated=False) == HIDDEN.encode()
    assert Redaction().body(body, truncated=False) == body
    assert redaction.body(b'{"card": 1}', truncated=True) == HIDDEN.encode()
    assert redaction.body(b"plain", truncated=False) == b"plain"


@pytest.mark.parametrize(
    "echoed",
    [
        CANARY,
        json.dumps({"auth": CANARY}),
        quote(CANARY, safe=""),
        b64encode(CANARY.encode()).decode(),
        f"x{CANARY}y{CANARY}z",
    ],
)
def test_a_secret_that_comes_back_is_not_kept(echoed: str) -> None:
    """In no form in which a target is likely to send it."""
    told = evidence_of(
        answer(echoed.encode(), x_echo=echoed.replace("\n", "")), url="u", veil=Veil([CANARY])
    )
    for form in (CANARY, json.dumps(CANARY)[1:-1], quote(CANARY, safe="")):
        assert form not in json.loads(told)["body"]
        assert form not in json.loads(told)["headers"]["x-echo"]
    assert HIDDEN in told.decode()


def test_nor_its_beginning_where_the_answer_was_cut() -> None:
    cut = b"text " + CANARY.encode()[:9]
    told = json.loads(evidence_of(answer(cut, truncated=True), url="u", veil=Veil([CANARY])))
    assert told["body"] == "text "


def test_trouble_does_not_tell_either() -> None:
    result = NoAnswer(trouble=Trouble.BROKEN, detail=f"bad header {CANARY}")
    assert CANARY not in json.loads(evidence_of(result, url="u", veil=Veil([CANARY])))["detail"]


def test_what_is_too_short_to_be_a_secret_hides_nothing() -> None:
    assert not Veil(["", "a", "abc"])
