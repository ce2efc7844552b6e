"""References to secrets: found when a target is read, filled when a request is sent."""

from typing import Any

import pytest

from betimes.domain.errors import Refused
from betimes.domain.origins import OpenSecret
from betimes.target.auth import NoSecret, credentials, filled, read_auth
from betimes.target.definition import read_target
from target_kit import DEV

OPENED = {
    "a": OpenSecret([b"one", b"old"]),
    "b": OpenSecret([b"two"]),
    "lines": OpenSecret([b"x\r\nx-evil: 1"]),
    "bytes": OpenSecret([b"\xff"]),
}


def target(**more: Any) -> Any:
    return read_target({"url": "http://127.0.0.1:8000/", **more}, DEV)


def test_a_target_without_references_needs_no_secret() -> None:
    found = target(headers={"x": "y"})
    assert (found.secrets, found.private, found.private_headers) == ((), frozenset(), ())


def test_every_reference_is_found() -> None:
    found = target(
        headers={"x-a": "Token {{secret:a}}", "x-plain": "{{secret}} {{other:a}}"},
        auth={"type": "basic", "username": "u", "secret": "b"},
        secret_ref="sign",  # noqa: S106 -- the name of one
        client_certificate="cert",
        ca_certificates="{{secret:ca}}",
    )
    assert found.secrets == ("a", "b", "ca", "cert", "sign")
    assert found.hidden == {"a", "b"}
    assert found.private == {"x-a", "authorization", "webhook-signature"}
    assert found.private_headers == ("x-a: Token {{secret:a}}",)
    assert "x-plain: {{secret}} {{other:a}}" in found.headers
    assert not any("secret:a" in line for line in found.headers)


@pytest.mark.parametrize(
    ("auth", "line"),
    [
        ({"type": "bearer", "secret": "a"}, "authorization: Bearer one"),
        ({"type": "basic", "username": "u", "secret": "a"}, "authorization: Basic dTpvbmU="),
        ({"type": "header", "header": "X-Key", "secret": "b"}, "X-Key: two"),
    ],
)
def test_credentials_are_a_line(auth: dict[str, Any], line: str) -> None:
    read = read_auth(auth)
    assert read is not None
    assert credentials(read, OPENED) == line


def test_references_are_filled_with_the_newest() -> None:
    assert filled("x: {{secret:a}}-{{secret:b}}", OPENED) == "x: one-two"


@pytest.mark.parametrize(
    ("name", "kind", "retryable"),
    [
        ("missing", "SecretMissing", True),
        ("lines", "SecretUnusable", False),
        ("bytes", "SecretUnusable", False),
    ],
)
def test_a_header_is_never_blank_or_broken(name: str, kind: str, *, retryable: bool) -> None:
    """A secret that is missing may come; one that would forge headers will not do."""
    with pytest.raises(NoSecret) as found:
        filled(f"x: {{{{secret:{name}}}}}", OPENED)
    assert (found.value.kind, found.value.retryable) == (kind, retryable)
    assert "evil" not in found.value.sentence


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "digest", "secret": "a"},
        {"type": "bearer"},
        {"type": "bearer", "secret": "{{secret:a}}"},
        {"type": "basic", "secret": "a"},
        {"type": "basic", "username": "a\nb", "secret": "a"},
        {"type": "header", "header": "webhook-id", "secret": "a"},
        {"type": "header", "header": "a b", "secret": "a"},
        {"type": "oauth2", "secret": "a", "client_id": "c"},
        {"type": "oauth2", "secret": "a", "token_url": "http://127.0.0.1/"},
    ],
)
def test_what_makes_no_sense_is_refused(auth: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        target(auth=auth)
    assert refused.value.pointer.startswith("/target/auth")
