"""Signatures, checked by ourselves and by the reference library."""

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from betimes.domain.errors import Invalid
from betimes.domain.webhook import read_secret, shown_secret, sign
from betimes.webhooks import BadSignature, verify

OLD, NEW = bytes(range(24)), bytes(range(64))
BODY = '{"run":"Grüße"}'.encode()
AT = 1_700_000_000


def signed(*secrets: bytes, body: bytes = BODY, at: int = AT) -> dict[str, str]:
    return {
        "Webhook-Id": "run_01",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": sign(secrets, "run_01", at, body),
        "Betimes-Run-Id": "run_01",
        "Betimes-Attempt": "3",
        "Betimes-Fence": "9",
        "Betimes-Scheduled-For": "2026-03-01T12:00:00.000000Z",
    }


def test_the_reference_library_accepts_ours() -> None:
    """Both secrets of a rotation, each alone."""
    now = datetime.now(UTC)  # noqa: TID251 -- the reference library asks the machine
    headers = signed(OLD, NEW, at=int(now.timestamp()))
    for secret in (OLD, NEW):
        told = Webhook(shown_secret(secret)).verify(
            BODY, {name.lower(): value for name, value in headers.items()}
        )
        assert told == {"run": "Grüße"}


def test_we_accept_the_reference_library() -> None:
    """The other direction."""
    now = datetime.fromtimestamp(AT, UTC)
    header = Webhook(shown_secret(OLD)).sign("run_01", now, BODY.decode())
    headers = {**signed(NEW), "Webhook-Signature": header}
    assert verify(headers, BODY, shown_secret(OLD), now=AT).id == "run_01"


def test_a_genuine_request_tells_its_run() -> None:
    """Names of headers in any case."""
    told = verify(signed(OLD), BODY, shown_secret(OLD), now=AT)
    assert (told.id, told.timestamp, told.run_id, told.attempt, told.fence) == (
        "run_01",
        AT,
        "run_01",
        3,
        9,
    )
    assert told.scheduled_for == "2026-03-01T12:00:00.000000Z"


def test_during_a_rotation_either_secret_will_do() -> None:
    """On both sides."""
    assert verify(signed(OLD, NEW), BODY, shown_secret(NEW), now=AT).id
    assert verify(signed(NEW), BODY, [shown_secret(OLD), shown_secret(NEW)], now=AT).id
    with pytest.raises(BadSignature):
        verify(signed(OLD), BODY, shown_secret(NEW), now=AT)


def test_one_flipped_bit_anywhere_is_found() -> None:
    """In the body, in the id, in the time and in the signature."""
    for place in range(len(BODY)):
        changed = bytearray(BODY)
        changed[place] ^= 1
        with pytest.raises(BadSignature):
            verify(signed(OLD), bytes(changed), shown_secret(OLD), now=AT)
    for name, value in (
        ("Webhook-Id", "run_02"),
        ("Webhook-Timestamp", str(AT + 1)),
        ("Webhook-Signature", "v1," + b64encode(bytes(32)).decode()),
        ("Webhook-Signature", signed(OLD)["Webhook-Signature"].replace("v1,", "v2,")),
        ("Webhook-Timestamp", "soon"),
        ("Webhook-Timestamp", "\u0661\u0667"),
    ):
        with pytest.raises(BadSignature):
            verify({**signed(OLD), name: value}, BODY, shown_secret(OLD), now=AT)


@pytest.mark.parametrize("missing", ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
def test_a_missing_header_is_named(missing: str) -> None:
    """So that a receiver behind a proxy sees what was lost."""
    headers = signed(OLD)
    del headers[missing]
    with pytest.raises(BadSignature, match=missing.lower()):
        verify(headers, BODY, shown_secret(OLD), now=AT)


def test_only_recent_requests_count() -> None:
    """Five minutes both ways, unless the receiver says otherwise."""
    for off in (-300, 300):
        assert verify(signed(OLD), BODY, shown_secret(OLD), now=AT + off).id
    for off in (-301, 301):
        with pytest.raises(BadSignature, match="last"):
            verify(signed(OLD), BODY, shown_secret(OLD), now=AT + off)
    hour = timedelta(hours=1)
    assert verify(signed(OLD), BODY, shown_secret(OLD), now=AT + 301, tolerance=hour).id


def test_without_a_time_the_present_is_meant() -> None:
    """A request of 2023 is not recent."""
    with pytest.raises(BadSignature, match="last"):
        verify(signed(OLD), BODY, shown_secret(OLD))


@pytest.mark.parametrize(
    "text", ["whsec_", "whsec_!!", "whsec_" + b64encode(bytes(23)).decode(), "ä"]
)
def test_a_secret_has_a_shape(text: str) -> None:
    """Too short, not base64, nothing."""
    with pytest.raises(Invalid):
        read_secret(text)
    assert read_secret(shown_secret(OLD)) == OLD


def test_an_event_is_told_with_its_type_and_data() -> None:
    body = json.dumps({"type": "run.dead", "data": {"run_id": "run_1"}}).encode()
    event = verify(signed(OLD, body=body), body, shown_secret(OLD), now=AT)
    assert (event.type, event.data) == ("run.dead", {"run_id": "run_1"})
    plain = verify(signed(OLD, body=b"[7]"), b"[7]", shown_secret(OLD), now=AT)
    assert (plain.type, plain.data) == (None, [7])
    assert verify(signed(OLD, body=b"x"), b"x", shown_secret(OLD), now=AT).json() is None
