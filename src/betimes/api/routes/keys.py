"""API keys."""

from datetime import UTC, datetime
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, maybe_instant, page, paged, read_instant, read_span
from betimes.domain.errors import Invalid
from betimes.domain.scopes import OF_ROLE, Scope
from betimes.ops import keys as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.quotas import check_keys
from betimes.wire import keys as wire
from betimes.wire.base import Page, shown_instant, shown_maybe

BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), "")


def shown_key(key: ops.ApiKey) -> wire.Key:
    """A key without its secret."""
    return wire.Key(**_members(key))


def _members(key: ops.ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "kind": key.kind,
        "scopes": list(key.scopes),
        "queues": None if key.queues is None else list(key.queues),
        "ip_allow": None if key.networks is None else list(key.networks),
        "created_at": shown_instant(key.created_at),
        "created_by": key.created_by,
        "expires_at": shown_maybe(key.expires_at),
        "revoked_at": shown_maybe(key.revoked_at),
        "last_used_at": shown_maybe(key.last_used_at),
        "replaces": key.replaces,
    }


async def create(call: Call[NoQuery, wire.NewKey]) -> Reply:
    """Make a key; its secret is in this answer and nowhere else."""
    body = call.body
    if body.scopes and body.role is not None:
        raise Trouble("invalid_parameter", "expected scopes or a role, got both")
    scopes = sorted(OF_ROLE[body.role]) if body.role is not None else body.scopes
    expires_at = maybe_instant(body.expires_at, pointer="/expires_at")
    if expires_at is not None and expires_at <= call.service.now():
        raise Invalid(
            "expected an expiry in the future, got one that has passed", pointer="/expires_at"
        )
    new = ops.NewKey(
        name=body.name,
        kind=body.kind,
        scopes=scopes,
        queues=body.queues,
        networks=body.ip_allow,
        expires_at=expires_at,
    )
    await check_keys(call.service.desk, call.tenant, call.caller.quotas)

    async def verb(desk: Desk) -> ops.MadeKey:
        return await call.service.keys.create(desk, call.tenant, new, by=call.caller)

    return await perform(call, verb, _made)


def _made(made: ops.MadeKey) -> Told:
    return Told(
        answer=answer(
            201,
            wire.MadeKey(**_members(made.key), secret=made.text),
            headers={"Location": f"/v1/api-keys/{made.key.id}"},
        ),
        resource=made.key.id,
        after={"kind": made.key.kind, "scopes": list(made.key.scopes)},
    )


async def list_all(call: Call[wire.PageOnly, None]) -> Reply:
    """A page of keys, oldest first."""
    scope = ("keys", call.tenant)
    after = BEGINNING
    if call.query.cursor is not None:
        at, key = call.leaves.read(scope, call.query.cursor)
        after = (read_instant(at, pointer="/cursor"), key)
    limit = coerced(call.query.limit)
    keys = await ops.list_keys(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(keys) == limit:
        last = keys[-1]
        cursor = call.leaves.write(scope, [shown_instant(last.created_at), last.id])
    return paged(call, page([shown_key(key) for key in keys], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One key."""
    return Reply(value=shown_key(await _found(call)))


async def _found(call: Call[Any, Any]) -> ops.ApiKey:
    return await ops.get_key(call.service.desk, call.tenant, call.path["key"])


async def change(call: Call[NoQuery, wire.ChangeKey]) -> Reply:
    """Rename a key, bind it otherwise, or let it expire."""
    key, body = await _found(call), call.body

    async def verb(desk: Desk) -> ops.ApiKey:
        return await ops.change_key(
            desk,
            call.tenant,
            key.id,
            name=body.name,
            queues=body.queues,
            networks=body.ip_allow,
            expires_at=maybe_instant(body.expires_at, pointer="/expires_at"),
            by=call.caller,
        )

    reply = await perform(call, verb, _changed)
    call.service.credentials.forget(key.id)
    return reply


def _changed(key: ops.ApiKey) -> Told:
    return Told(answer=answer(200, shown_key(key)), resource=key.id, after={"name": key.name})


async def revoke(call: Call[NoQuery, None]) -> Reply:
    """Revoke a key at once."""
    key = await _found(call)

    async def verb(desk: Desk) -> str:
        await ops.revoke_key(desk, call.tenant, key, by=call.caller)
        return key.id

    reply = await perform(
        call, verb, lambda gone: Told(answer=answer(204), resource=gone, after={"revoked": True})
    )
    call.service.credentials.forget(key.id)
    return reply


async def rotate(call: Call[NoQuery, wire.RotateKey]) -> Reply:
    """Make a key that may do the same; the old one works until the overlap has passed."""
    key = await _found(call)
    overlap = read_span(call.body.overlap, pointer="/overlap")

    async def verb(desk: Desk) -> ops.MadeKey:
        return await call.service.keys.rotate(
            desk, call.tenant, key.id, overlap=overlap, by=call.caller
        )

    reply = await perform(call, verb, _made)
    call.service.credentials.forget(key.id)
    return reply


ROUTES = (
    Route(
        method="GET",
        path="/v1/api-keys",
        name="keys.list",
        says="List keys.",
        handler=list_all,
        scope=Scope.KEYS_READ,
        query=wire.PageOnly,
        answers={200: Page[wire.Key]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path="/v1/api-keys",
        name="keys.create",
        says="Make a key; its secret is shown this once.",
        handler=create,
        scope=Scope.KEYS_WRITE,
        body=wire.NewKey,
        answers={201: wire.MadeKey},
        load=Load.WRITE,
        headers=("Location",),
    ),
    Route(
        method="GET",
        path="/v1/api-keys/{key}",
        name="keys.get",
        says="Read one key.",
        handler=read,
        scope=Scope.KEYS_READ,
        answers={200: wire.Key},
    ),
    Route(
        method="PATCH",
        path="/v1/api-keys/{key}",
        name="keys.update",
        says="Rename a key, bind it otherwise, or let it expire.",
        handler=change,
        scope=Scope.KEYS_WRITE,
        body=wire.ChangeKey,
        answers={200: wire.Key},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("invalid_state",),
    ),
    Route(
        method="DELETE",
        path="/v1/api-keys/{key}",
        name="keys.revoke",
        says="Revoke a key at once.",
        handler=revoke,
        scope=Scope.KEYS_WRITE,
        answers={204: None},
        load=Load.VITAL,
    ),
    Route(
        method="POST",
        path="/v1/api-keys/{key}/rotate",
        name="keys.rotate",
        says="Replace a key; the old one works until the overlap has passed.",
        handler=rotate,
        scope=Scope.KEYS_WRITE,
        body=wire.RotateKey,
        body_optional=True,
        answers={201: wire.MadeKey},
        load=Load.WRITE,
        problems=("invalid_state",),
    ),
)
