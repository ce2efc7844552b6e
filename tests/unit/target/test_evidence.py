"""What is kept of an exchange."""

import json
from dataclasses import replace
from typing import Any

from betimes.target.answer import Answer, NoAnswer, Timings, Trouble
from betimes.target.evidence import EVIDENCE_BYTES_MAX, evidence_of


def told(**given: Any) -> Any:
    plain = Answer(
        status=200,
        headers=[("a", "b")],
        body=b"ok",
        truncated=False,
        address="1.1.1.1",
        reused=False,
        timings=Timings(connect=1.5, total=2.5),
    )
    answer = replace(plain, **given)
    encoded = evidence_of(answer, url="https://example.com/")
    assert len(encoded) <= EVIDENCE_BYTES_MAX
    assert b"\\u0000" not in encoded
    return json.loads(encoded)


def test_an_answer_in_words() -> None:
    """Everything a person asks for first."""
    assert told() == {
        "url": "https://example.com/",
        "status": 200,
        "headers": {"a": "b"},
        "reused": False,
        "address": "1.1.1.1",
        "timings_ms": {"connect": 1.5, "total": 2.5},
        "body": "ok",
        "truncated": False,
    }


def test_no_answer_in_words() -> None:
    """What was wrong, and how long it took to find out."""
    result = NoAnswer(trouble=Trouble.CONNECT, detail="refused\0", timings=Timings(total=3))
    assert json.loads(evidence_of(result, url="u")) == {
        "url": "u",
        "error": "TargetUnreachable",
        "detail": "refused",
        "timings_ms": {"total": 3},
    }


def test_bytes_that_are_no_text_are_kept_as_base64() -> None:
    """Also text with a zero in it, which no column takes."""
    assert told(body=b"\xff\xfe")["body_base64"] == "//4="
    assert told(body=b"a\0b")["body_base64"] == "YQBi"


def test_a_character_cut_in_two_does_not_spoil_the_text() -> None:
    """Only at the end, and only if something was cut."""
    assert told(body="grü".encode()[:-1], truncated=True)["body"] == "gr"
    assert "body_base64" in told(body="grü".encode()[:-1], truncated=False)
    assert "body_base64" in told(body=b"\xc3" + b"abcdef", truncated=True)


def test_whatever_comes_fits() -> None:
    """Control characters grow sixfold; headers may be many."""
    shown = told(body=b"\x01" * 16_384)
    assert (len(shown["body"]), shown["truncated"]) == (4_096, True)
    many = told(headers=[(f"x-{n}", "y" * 500) for n in range(60)])
    assert 0 < len(many["headers"]) < 20


def test_secrets_of_the_target_are_hidden() -> None:
    """Cookies above all; headers that came twice are joined."""
    shown = told(headers=[("set-cookie", "s=1"), ("x", "1\0"), ("x", "2")])
    assert shown["headers"] == {"set-cookie": "[hidden]", "x": "1, 2"}
