"""Headers of outgoing requests."""

from datetime import UTC, datetime

import pytest

from betimes.domain.errors import BadTarget, TooLarge
from betimes.target.headers import Facts, check_headers, our_headers

FACTS = Facts(
    run_id="run_01",
    attempt=2,
    fence=7,
    scheduled_for=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
    traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Content-Length",
        "transfer-encoding",
        "Connection",
        "Proxy-Authorization",
        "proxy-x",
        "Webhook-Signature",
        "betimes-run-id",
        "Idempotency-Key",
        "TraceParent",
        "Expect",
        "Upgrade",
        "TE",
        "Accept-Encoding",
    ],
)
def test_some_headers_are_ours(name: str) -> None:
    """Whoever could set them could be somebody else."""
    with pytest.raises(BadTarget, match="can be chosen"):
        check_headers({name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\0"),
        ("a b", "c"),
        ("a:", "c"),
        ("", "c"),
        ("a", " c"),
    ],
)
def test_nothing_can_be_smuggled(name: str, value: str) -> None:
    """One name, one line."""
    with pytest.raises(BadTarget):
        check_headers({name: value})


def test_ordinary_headers_pass_and_many_do_not() -> None:
    """Bounded by number and by bytes."""
    check_headers({"Authorization": "Bearer x", "Content-Type": "text/plain", "X-A": ""})
    with pytest.raises(TooLarge):
        check_headers({f"x-{number}": "" for number in range(101)})
    with pytest.raises(TooLarge):
        check_headers({"x": "y" * 40_000})


def test_every_request_says_whose_it_is() -> None:
    """With a signature when there is a secret."""
    lines = our_headers(FACTS, None)
    assert 'idempotency-key: "run_01"' in lines
    assert "betimes-attempt: 2" in lines
    assert "betimes-fence: 7" in lines
    assert "betimes-scheduled-for: 2026-03-01T12:00:00.000000Z" in lines
    assert not any(line.startswith("webhook") for line in lines)
    signed = our_headers(FACTS, (1_700_000_000, "v1,abc"))
    assert signed[-3:] == [
        "webhook-id: run_01",
        "webhook-timestamp: 1700000000",
        "webhook-signature: v1,abc",
    ]
