"""AWS Signature Version 4 for one service: S3 and what speaks like it. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who signs, and for where."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"


def quoted(path: str) -> str:
    """A path as it is signed and sent."""
    return quote(path, safe="/-_.~")


def signed_headers(
    credentials: Credentials,
    *,
    method: str,
    host: str,
    path: str,
    body: bytes,
    now: datetime,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The headers that make a request one of ours; `path` is quoted, there is no query."""
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    day = stamp[:8]
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp, **(more or {})}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    asked = f"{method}\n{path}\n\n{lines}\n{names}\n{digest}"
    scope = f"{day}/{credentials.region}/{SERVICE}/aws4_request"
    text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(asked.encode()).hexdigest()])
    signature = hmac.new(_key(credentials, day), text.encode(), hashlib.sha256).hexdigest()
    credential = f"{credentials.access_key}/{scope}"
    return {
        **{name: value for name, value in headers.items() if name != "host"},
        "authorization": (
            f"{ALGORITHM} Credential={credential},SignedHeaders={names},Signature={signature}"
        ),
    }


def _key(credentials: Credentials, day: str) -> bytes:
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (day, credentials.region, SERVICE, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
