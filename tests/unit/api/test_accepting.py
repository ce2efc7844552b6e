"""The Accept header: what it takes, what it prefers, what it leaves out."""

import pytest

from betimes.api.accepting import RANGES_MAX, check_acceptable, chosen
from betimes.api.call import Request
from betimes.api.problem import Trouble
from betimes.api.routes import ROUTES

JSON, PLAIN, EVENTS, HTML = "application/json", "text/plain", "text/event-stream", "text/html"


def saying(accept: str | None, *, doubled: bool = False) -> Request:
    return Request(
        method="GET",
        path="/v1/jobs",
        query_string=b"",
        headers={} if accept is None else {b"accept": accept.encode()},
        doubled=frozenset({b"accept"}) if doubled else frozenset(),
        address="",
        id="req_1",
    )


@pytest.mark.parametrize(
    ("accept", "offers", "choice"),
    [
        (None, (JSON,), JSON),
        ("", (JSON,), JSON),
        (" , ", (JSON,), JSON),
        ("*/*", (JSON,), JSON),
        ("*", (JSON,), JSON),
        ("application/json", (JSON,), JSON),
        ("Application/JSON; charset=utf-8", (JSON,), JSON),
        ("application/*", (JSON,), JSON),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", (JSON,), JSON),
        ("application/xml, application/json;q=0.1", (JSON,), JSON),
        ("application/json;q=much", (JSON,), JSON),
        ("text/*", (EVENTS,), EVENTS),
        ("text/event-stream", (EVENTS,), EVENTS),
        ("text/plain;version=0.0.4;q=0.5", (PLAIN,), PLAIN),
        ("text/plain", (JSON, PLAIN), PLAIN),
        ("text/*", (JSON, PLAIN), PLAIN),
        ("text/plain, application/json", (JSON, PLAIN), JSON),
        ("text/plain, application/json;q=0.5", (JSON, PLAIN), PLAIN),
        ("text/plain;q=0.5, */*", (JSON, PLAIN), JSON),
        ("application/json;q=0, */*", (JSON, PLAIN), PLAIN),
        ("application/xml", (JSON,), None),
        ("application/xml", (JSON, PLAIN), None),
        ("text/*", (JSON,), None),
        ("application/json;q=0", (JSON,), None),
        ("application/json; Q=0.0, */*", (JSON,), None),
        ("*/*;q=0", (JSON,), None),
        ("application/json-seq", (JSON,), None),
        (JSON, (HTML,), None),
    ],
)
def test_what_is_chosen(accept: str | None, offers: tuple[str, ...], choice: str | None) -> None:
    assert chosen(saying(accept), offers) == choice


def test_a_refusal_says_what_there_is() -> None:
    with pytest.raises(Trouble) as caught:
        check_acceptable(saying("application/xml"), (JSON, PLAIN))
    assert (caught.value.code, caught.value.status) == ("not_acceptable", 406)
    assert "takes application/json or text/plain, got 'application/xml'" in caught.value.detail


@pytest.mark.parametrize("offers", [(), ("*/*",)])
def test_what_has_no_form_or_any_is_never_refused(offers: tuple[str, ...]) -> None:
    check_acceptable(saying("application/xml"), offers)


def test_a_header_that_came_twice_excludes_nothing() -> None:
    assert chosen(saying("application/xml", doubled=True), (JSON,)) == JSON


def test_no_more_ranges_are_read_than_anybody_needs() -> None:
    many = ", ".join(["text/html"] * RANGES_MAX)
    assert chosen(saying(f"{many}, application/json"), (JSON,)) is None
    assert chosen(saying(f"application/json, {many}"), (JSON,)) == JSON


def test_operations_without_content_offer_nothing() -> None:
    offers = {route.name: route.offers for route in ROUTES}
    assert offers["runs.logs"] == (JSON, PLAIN)
    assert offers["blobs.get"] == ("*/*",)
    assert all(offers[route.name] == () for route in ROUTES if set(route.answers) == {204})
