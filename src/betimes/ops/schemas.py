"""Payloads are held to what workers say their handlers accept.

A handler nobody has described accepts anything. Where workers of two releases run side by side, a
payload that suits one of them is accepted: somebody can do it, so a rolling update refuses none.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NoReturn

import jsonschema_rs
import msgspec

from betimes.domain.errors import Invalid, Locked, NotFound, TooLarge
from betimes.domain.ids import TenantId, from_text
from betimes.domain.kept import kept_by_text
from betimes.domain.run import Run
from betimes.ops.asking import Asking
from betimes.ops.blobs import get_blob_row, read_reference
from betimes.ops.desk import Desk
from betimes.ops.schema_cost import affordable
from betimes.store.pool import Connection
from betimes.store.schemas import Declared, declare_schemas, read_schemas

__all__ = [
    "ANYTHING",
    "Accepted",
    "Declared",
    "Schemas",
    "check_again",
    "check_own",
    "check_schema",
    "declare",
    "declared",
    "read_contents",
]

SCHEMA_BYTES_MAX = 64 * 1024
DIGEST_BYTES = 16
BELIEVED_FOR = 2.0
TENANTS_MAX = 10_000
COMPILED_BYTES_MAX = 32 << 20
COMPILED_BYTES, COMPILED_FACTOR = 5_000, 10
"""What a validator takes: about so much, and so many times its text."""
ALIVE_FOR = timedelta(minutes=5)
"""How long after its last sign of life what a worker accepts still counts."""
FORGET_AFTER = timedelta(days=30)
POINTER = "/payload"
REFERRED_BYTES_MAX = 1 << 20
REFERENCES_MAX = 20
"""Larger payloads behind references, and further ones of a batch, are left to the worker."""


def declared(handler: str, schema: Mapping[str, Any], *, pointer: str) -> Declared:
    """A schema as it is stored; one that is none is refused."""
    text = msgspec.json.encode(schema, order="sorted")
    if len(text) > SCHEMA_BYTES_MAX:
        raise TooLarge(
            f"expected a schema of at most {SCHEMA_BYTES_MAX} bytes, got {len(text)}",
            pointer=pointer,
        )
    digest = blake2b(text, digest_size=DIGEST_BYTES).hexdigest()
    try:
        compiled(text.decode())
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise Invalid(f"expected a JSON Schema: {reason[:500]}", pointer=pointer) from error
    return Declared(handler, digest, text.decode())


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what a job says its payloads are like, if that is no schema."""
    declared("", schema, pointer="/payload_schema")


def check_own(schema: Mapping[str, Any] | None, payload: bytes | None) -> None:
    """Refuse a payload that does not fit what its job says; one that says nothing takes any."""
    if schema is not None:
        text = msgspec.json.encode(schema, order="sorted").decode()
        _check("the payload_schema of its job", payload, [text])


@kept_by_text(COMPILED_BYTES_MAX, factor=COMPILED_FACTOR, each=COMPILED_BYTES)
def compiled(schema: str) -> Any:
    """A validator; it reaches for nothing outside the schema, and its patterns cannot run away."""
    options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.validator_for(schema, retriever=_refuse, pattern_options=options)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"expected a schema that stands for itself, got a reference to {uri[:200]!r}")


async def declare(
    connection: Connection, desk: Desk, tenant: TenantId, schemas: Mapping[str, Declared]
) -> None:
    """Keep what a worker declares, inside the transaction that registers it."""
    if schemas:
        now = await desk.now(connection)
        await declare_schemas(
            connection, tenant, schemas, now=now, forget_before=now - FORGET_AFTER
        )


class Accepted:
    """What the handlers of one tenant accept."""

    def __init__(
        self, schemas: Mapping[str, Sequence[str]], contents: Mapping[str, bytes] | None = None
    ) -> None:
        self._schemas = schemas
        self._contents = contents or {}

    def knows(self, handler: str | None) -> bool:
        """Whether somebody has said what a handler accepts."""
        return bool(self._schemas.get(handler or ""))

    def reading(self, contents: Mapping[str, bytes]) -> "Accepted":
        """The same, with what some references stand for."""
        return Accepted(self._schemas, contents)

    def check(
        self, handler: str | None, payload: bytes | None, reference: str | None = None
    ) -> None:
        """Refuse what no worker would take; a reference that nobody has read is let through.

        Raises:
            Invalid: the payload fits none of the schemas of its handler.

        """
        schemas = self._schemas.get(handler or "")
        if not schemas:
            return
        if payload is not None or reference is None:
            _check(_named(handler), payload, schemas)
        elif reference in self._contents:
            _check_unseen(handler, self._contents[reference], schemas)


ANYTHING = Accepted({})


class Schemas:
    """What handlers accept, as learned a moment ago."""

    def __init__(self) -> None:
        self._known: dict[TenantId, tuple[Accepted, float]] = {}
        self._asking: Asking[TenantId, Accepted] = Asking()

    def forget(self, tenant: TenantId) -> None:
        """Ask anew: a worker has registered here."""
        self._asking.forget(tenant)
        self._known.pop(tenant, None)

    async def of(self, desk: Desk, tenant: TenantId) -> Accepted:
        """What the handlers of a tenant accept."""
        accepted, until = self._known.get(tenant, (ANYTHING, -1.0))
        if until <= desk.clock.monotonic():
            accepted = await self._asking.ask(tenant, lambda: self._learn(desk, tenant))
        return accepted

    async def _learn(self, desk: Desk, tenant: TenantId) -> Accepted:
        now = desk.clock.monotonic()
        schemas: dict[str, list[str]] = {}
        for one in await _read(desk, tenant):
            schemas.setdefault(one.handler, []).append(one.schema)
        accepted = Accepted(schemas)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = (accepted, now + BELIEVED_FOR)
        return accepted


async def _read(desk: Desk, tenant: TenantId) -> list[Declared]:
    async def work(connection: Connection) -> list[Declared]:
        alive_after = await desk.now(connection) - ALIVE_FOR
        return await read_schemas(connection, tenant, alive_after=alive_after)

    return await desk.transact(work, tenant=tenant)


def _named(handler: str | None) -> str:
    return f"the handler {handler!r}"


def _check(whose: str, payload: bytes | None, schemas: Sequence[str]) -> None:
    """Against each of the schemas; the first refusal is told when all refuse."""
    try:
        value = None if payload is None else msgspec.json.decode(payload)
    except msgspec.DecodeError:
        raise Invalid(
            f"expected a payload in JSON, as {whose} declares",
            code="invalid_payload",
            pointer=POINTER,
        ) from None
    refusal: Any = None
    for schema in schemas:
        if not affordable(schema, payload):
            return  # left to the worker, which pays for itself
        found = next(iter(compiled(schema).iter_errors(value)), None)
        if found is None:
            return
        refusal = refusal or found
    raise Invalid(
        f"the payload does not fit {whose}: {refusal.message[:500]}",
        code="invalid_payload",
        pointer=POINTER + "".join(f"/{_escaped(step)}" for step in refusal.instance_path),
    )


def _check_unseen(handler: str | None, payload: bytes, schemas: Sequence[str]) -> None:
    """The same for a blob, of which nothing is told: who refers to it may not be let to read it."""
    try:
        _check(_named(handler), payload, schemas)
    except Invalid:
        raise Invalid(
            f"what payload_ref stands for does not fit the handler {handler!r}",
            code="invalid_payload",
            pointer="/payload_ref",
        ) from None


async def check_again(
    desk: Desk, tenant: TenantId, accepted: Accepted, run: Run, override: bytes | None = None
) -> None:
    """Refuse to do something over that no worker would take, as it was or with another payload.

    Raises:
        Invalid: it fits none of the schemas of its handler.

    """
    if not accepted.knows(run.handler):
        return
    payload = run.payload if override is None else override
    reference = run.options.get("payload_ref")
    if payload is None and reference is not None:
        accepted = accepted.reading(await read_contents(desk, tenant, [str(reference)]))
    accepted.check(run.handler, payload, None if reference is None else str(reference))


async def read_contents(
    desk: Desk, tenant: TenantId, references: Iterable[str]
) -> dict[str, bytes]:
    """What references stand for, as far as that lies here, is small enough, and they are few."""
    found = {}
    for reference in sorted(set(references))[:REFERENCES_MAX]:
        try:
            row = await get_blob_row(desk, tenant, from_text("blob", reference))
            if row.size <= REFERRED_BYTES_MAX:
                found[reference] = await read_reference(desk, tenant, reference)
        except (Invalid, Locked, NotFound):
            continue
    return found


def _escaped(step: object) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")
