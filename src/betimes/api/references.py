"""References to payloads in bodies: well-formed, and to something that is there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from betimes.api.call import Call
from betimes.domain.errors import Invalid
from betimes.domain.ids import from_text, shard_of
from betimes.ops.blobs import find_blobs

PREFIX = "blob_"
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


@dataclass(frozen=True, slots=True)
class References:
    """Which blobs there are; None when nobody has looked, and only the form can be judged."""

    found: frozenset[UUID] | None = None

    def check(self, reference: str | None, *, pointer: str = "/payload_ref") -> str | None:
        """The reference, if it can be followed: a blob of ours, or a URI that a handler reads."""
        if reference is None:
            return None
        if not reference.startswith(PREFIX):
            if _ELSEWHERE.fullmatch(reference) is None:
                raise _malformed(reference, pointer)
            return reference
        try:
            blob = from_text("blob", reference)
        except Invalid:
            raise _malformed(reference, pointer) from None
        if self.found is not None and blob not in self.found:
            raise Invalid(
                f"expected a blob that is there, got {reference!r}, which is unknown or expired",
                code="invalid_payload",
                pointer=pointer,
            )
        return reference


UNSEEN = References()


async def references_of(call: Call[Any, Any], references: Iterable[str | None]) -> References:
    """What is known about these references; nothing is asked where there is none of ours."""
    wanted = {
        blob
        for reference in references
        if reference is not None and (blob := _blob(reference)) is not None
    }
    if not wanted:
        return UNSEEN
    known = frozenset(one for one in wanted if shard_of(one) < call.service.desk.shards)
    return References(await find_blobs(call.service.desk, call.tenant, known))


def _blob(reference: str) -> UUID | None:
    if not reference.startswith(PREFIX):
        return None
    try:
        return from_text("blob", reference)
    except Invalid:
        return None


def _malformed(reference: str, pointer: str) -> Invalid:
    return Invalid(
        "expected a reference such as blob_01JD0000000000000000000000 or s3://bucket/key, "
        f"got {reference[:100]!r}",
        pointer=pointer,
    )
