"""For receivers: check that a request came from Betimes, and read what it says about its run.

    from betimes import webhooks

    delivery = webhooks.verify(request.headers, request.body, secret=secret)
    if delivery.id in seen: ...
    if delivery.type == "run.dead": alert(delivery.data["run_id"])

Nothing here needs the server, or anything beyond the standard library.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from betimes.domain import webhook
from betimes.domain.errors import Invalid

TOLERANCE = timedelta(minutes=5)

__all__ = ["TOLERANCE", "BadSignature", "Delivery", "verify"]


class BadSignature(Invalid):
    """The request was not signed with the secret, or not recently."""

    default_code = "signature_mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a genuine request says: of the run it belongs to, or of what has happened."""

    id: str
    """The same for every attempt: what to recognise a repeat by."""
    timestamp: int
    run_id: str | None = None
    attempt: int | None = None
    fence: int | None = None
    """Rises from attempt to attempt: a lower one than seen before is stale."""
    scheduled_for: str | None = None
    body: bytes = b""
    """As it was received."""

    @property
    def type(self) -> str | None:
        """What happened, such as `run.dead`; None for a request that is no event."""
        found = self._event().get("type")
        return found if isinstance(found, str) else None

    @property
    def data(self) -> Any:
        """What an event tells; of any other request its body, read as JSON."""
        event = self._event()
        return event["data"] if "type" in event and "data" in event else self.json()

    def json(self) -> Any:
        """The body as JSON; None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def _event(self) -> Mapping[str, Any]:
        found = self.json()
        return found if isinstance(found, dict) else {}


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | Sequence[str],
    *,
    tolerance: timedelta = TOLERANCE,
    now: float | None = None,
) -> Delivery:
    """Check a request as it was received, byte for byte; raises `BadSignature` if it is not ours.

    Give several secrets while one replaces another. `now` is for tests.
    """
    told = {name.lower(): value for name, value in headers.items()}
    try:
        identifier, stamp = told[webhook.ID], told[webhook.TIMESTAMP]
        header = told[webhook.SIGNATURE]
    except KeyError as missing:
        raise BadSignature(f"expected the header {missing.args[0]}, got none") from None
    timestamp = _whole(stamp)
    if timestamp is None:
        raise BadSignature(f"expected {webhook.TIMESTAMP} in seconds, got {stamp[:40]!r}")
    secrets = [
        webhook.read_secret(one) for one in ([secret] if isinstance(secret, str) else secret)
    ]
    if not webhook.matches(secrets, identifier, stamp, body, header):
        raise BadSignature("expected a signature made with the secret, got another")
    present = time.time() if now is None else now  # noqa: TID251 -- a receiver has no clock of ours
    if abs(present - timestamp) > tolerance.total_seconds():
        raise BadSignature(f"expected a request of the last {tolerance}, got one of {timestamp}")
    return Delivery(
        id=identifier,
        timestamp=timestamp,
        run_id=told.get("betimes-run-id"),
        attempt=_whole(told.get("betimes-attempt")),
        fence=_whole(told.get("betimes-fence")),
        scheduled_for=told.get("betimes-scheduled-for"),
        body=body,
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
