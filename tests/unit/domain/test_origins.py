"""Origins of secrets: how they are read, and what they cover."""

import pytest

from betimes.domain.errors import Invalid
from betimes.domain.origins import covers, read_origins, shown_origins


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("HTTPS://API.Example.com/", "https://api.example.com"),
        ("https://api.example.com:443", "https://api.example.com"),
        ("http://api.example.com:80", "http://api.example.com"),
        ("http://api.example.com:443", "http://api.example.com:443"),
        ("https://*.example.com", "https://*.example.com"),
        ("https://*.example.com:8443", "https://*.example.com:8443"),
        ("https://[2001:db8::1]", "https://[2001:db8::1]"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("*", "*"),
    ],
)
def test_one_origin_has_one_spelling(text: str, kept: str) -> None:
    assert read_origins([text, text]) == (kept,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "https://",
        "https://*",
        "https://*.com",
        "https://a.*.example.com",
        "https://*example.com",
        "https://api.example.com/path",
        "https://me@api.example.com",
        "https://api.example.com:",
        "https://api.example.com:0",
        "https://api..example.com",
        "https://-api.example.com",
        "ftp://api.example.com",
        "https://api.example.com\n",
        "https://münchen.example",
        "**",
        "https://" + "a" * 300 + ".example.com",
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected an origin") as refused:
        read_origins(["*", text])
    assert refused.value.pointer == "/origins/1"


@pytest.mark.parametrize(
    ("bound", "origin", "may"),
    [
        ("*", "http://anything.example:8000", True),
        ("https://a.example.com", "https://a.example.com", True),
        ("https://a.example.com", "http://a.example.com", False),
        ("https://a.example.com", "https://a.example.com:8443", False),
        ("https://a.example.com", "https://b.a.example.com", False),
        ("https://*.example.com", "https://a.example.com", True),
        ("https://*.example.com", "https://a.b.example.com", True),
        ("https://*.example.com", "https://example.com", False),
        ("https://*.example.com", "https://evilexample.com", False),
        ("https://*.example.com", "https://a.example.com.evil.example", False),
        ("https://*.example.com", "https://a.example.com:8443", False),
        ("https://*.example.com", "http://a.example.com", False),
        ("https://*.example.com:8443", "https://a.example.com:8443", True),
        ("https://*.example.com:8443", "https://a.example.com", False),
    ],
)
def test_what_an_origin_covers(bound: str, origin: str, *, may: bool) -> None:
    assert covers([bound], origin) is may


def test_nothing_covers_nothing() -> None:
    assert not covers([], "https://a.example.com")
    assert shown_origins([]) == "no origin"
    assert shown_origins([str(n) for n in range(7)]) == "0, 1, 2, 3, 4 and 2 more"
