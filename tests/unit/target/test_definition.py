"""Targets as they are stored."""

from typing import Any

import pytest

from betimes.domain.errors import Invalid
from betimes.target.classify import StatusRange
from betimes.target.definition import read_codes, read_target
from betimes.target.url import UrlPolicy

URL = "https://example.com/hook"


def read(**more: Any) -> Any:
    return read_target({"url": URL, **more}, UrlPolicy())


def test_little_is_needed() -> None:
    """A URL: then it is a POST of the payload as JSON."""
    target = read()
    assert (target.method, target.body, target.sends_payload) == ("POST", None, True)
    assert target.headers == ("content-type: application/json",)
    assert (target.timeout.total_seconds(), target.redirects, target.tls) == (30, 0, None)


@pytest.mark.parametrize(
    ("given", "body", "kind"),
    [
        ({"body": "text"}, b"text", "text/plain; charset=utf-8"),
        ({"body": {"a": [1]}}, b'{"a":[1]}', "application/json"),
        ({"body": 0}, b"0", "application/json"),
        ({"body_base64": "AAE="}, b"\x00\x01", "application/octet-stream"),
    ],
)
def test_a_body_of_its_own(given: dict[str, Any], body: bytes, kind: str) -> None:
    """Text as text, values as JSON, bytes as bytes; the payload stays at home."""
    target = read(**given)
    assert (target.body, target.sends_payload) == (body, False)
    assert target.headers == (f"content-type: {kind}",)


def test_a_content_type_that_is_given_stays() -> None:
    """In whatever case it was written."""
    target = read(body="<a/>", headers={"Content-Type": "text/xml", "X-Empty": ""})
    assert target.headers == ("Content-Type: text/xml", "X-Empty;")


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_some_methods_carry_no_payload(method: str) -> None:
    """Unless the target has a body of its own."""
    target = read(method=method)
    assert (target.sends_payload, target.headers) == (False, ())
    assert read(method=method, body="x").body == b"x"


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"method": "TRACE"}, "/target/method"),
        ({"headers": {"host": "x"}}, "/target/headers/host"),
        ({"body": 1, "body_base64": "AA=="}, "/target/body_base64"),
        ({"body_base64": "*"}, "/target/body_base64"),
        ({"timeout_ms": 500}, "/target/timeout"),
        ({"timeout_ms": 901_000}, "/target/timeout"),
        ({"follow_redirects": 6}, "/target/follow_redirects"),
        ({"success_codes": [200, 99]}, "/target/success_codes/1"),
        ({"ca_certificates": "me"}, "/target/ca_certificates"),
        ({"url": "https://10.0.0.1/"}, "/target/url"),
        ({"url": None}, "/target/url"),
    ],
)
def test_what_makes_no_sense_is_pointed_at(given: dict[str, Any], pointer: str) -> None:
    """With the place in the request."""
    with pytest.raises(Invalid) as refused:
        read(**given)
    assert refused.value.pointer == pointer


def test_codes_are_numbers_or_ranges() -> None:
    """And ranges go upwards."""
    assert read_codes([200, "201", "300-308"]) == (
        StatusRange(200, 200),
        StatusRange(201, 201),
        StatusRange(300, 308),
    )
    for bad in ("204-200", "600", "20", "200-", "2xx", None):
        with pytest.raises(Invalid):
            read_codes([bad])
