"""Secrets: written and deleted by name, never read back."""

from base64 import b64decode
from binascii import Error as BadBase64
from http import HTTPStatus
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.scopes import Scope
from betimes.ops import secrets as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import secrets as wire
from betimes.wire.base import Page, shown_instant
from betimes.wire.keys import PageOnly


def shown_secret(row: ops.SecretName) -> wire.Secret:
    """A secret by name."""
    return wire.Secret(**_members(row))


def _members(row: ops.SecretName) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "versions": row.versions,
        "created_at": shown_instant(row.created_at),
        "updated_at": shown_instant(row.updated_at),
        "created_by": row.created_by,
        "origins": list(row.origins),
    }


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of names."""
    scope = ("secrets", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_secrets(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].name])
    return paged(call, page([shown_secret(row) for row in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """When and by whom a secret was written."""
    name = _name(call)
    try:
        found = await ops.get_secret(call.service.desk, call.tenant, name)
    except NotFound:
        raise missing("secret", name) from None
    history = [
        wire.SecretVersion(
            version=one.version,
            created_at=shown_instant(one.created_at),
            created_by=one.created_by,
        )
        for one in found
    ]
    return Reply(value=wire.SecretShown(**_members(ops.name_of(found)), history=history))


async def put(call: Call[NoQuery, wire.PutSecret]) -> Reply:
    """Write a secret; a value that it has already changes nothing."""
    name, value = _name(call), _value(call.body)

    async def verb(desk: Desk) -> ops.Written:
        return await ops.put_secret(
            desk,
            call.tenant,
            name,
            value,
            keep=call.body.keep,
            by=call.caller.key,
            origins=call.body.origins,
        )

    return await perform(call, verb, _written)


def _written(done: ops.Written) -> Told:
    row = done.secret
    status = HTTPStatus.CREATED if done.created else HTTPStatus.OK
    return Told(
        answer=answer(status, shown_secret(row), headers={"Location": f"/v1/secrets/{row.name}"}),
        resource=f"secret:{row.name}",
        after={"version": row.version, "origins": list(row.origins)},
        changed=done.changed,
    )


async def bind(call: Call[NoQuery, wire.BindSecret]) -> Reply:
    """Say where a secret may be sent; it was sent elsewhere for the last time."""
    name = _name(call)

    async def verb(desk: Desk) -> ops.SecretName:
        try:
            return await ops.bind_secret(desk, call.tenant, name, call.body.origins)
        except NotFound:
            raise missing("secret", name) from None

    return await perform(
        call,
        verb,
        lambda row: Told(
            answer=answer(HTTPStatus.OK, shown_secret(row)),
            resource=f"secret:{row.name}",
            after={"origins": list(row.origins)},
        ),
    )


def _value(body: wire.PutSecret) -> bytes:
    if (body.value is None) == (body.value_base64 is None):
        raise Trouble("invalid_parameter", "expected value or value_base64, one of them")
    if body.value is not None:
        return body.value.encode()
    try:
        return b64decode(body.value_base64 or "", validate=True)
    except (BadBase64, ValueError):
        raise Invalid("expected base64", pointer="/value_base64") from None


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Forget a secret at once; what refers to it fails until it is there again."""
    return await _delete(call, version=None)


async def delete_version(call: Call[NoQuery, None]) -> Reply:
    """Forget one version."""
    text = call.path["version"]
    if not text.isdecimal() or len(text) > 9:  # noqa: PLR2004 -- what an integer column holds
        raise missing("secret", call.path["secret"])
    return await _delete(call, version=int(text))


async def _delete(call: Call[Any, Any], *, version: int | None) -> Reply:
    name = _name(call)

    async def verb(desk: Desk) -> str:
        try:
            await ops.delete_secret(desk, call.tenant, name, version=version)
        except NotFound:
            raise missing("secret", name) from None
        return name

    return await perform(
        call,
        verb,
        lambda gone: Told(
            answer=answer(HTTPStatus.NO_CONTENT),
            resource=f"secret:{gone}",
            after={"deleted": "all" if version is None else version},
        ),
    )


def _name(call: Call[Any, Any]) -> str:
    name = call.path["secret"]
    if "\x00" in name:
        raise missing("secret", name)
    return name


ROUTES = (
    Route(
        method="GET",
        path="/v1/secrets",
        name="secrets.list",
        says="List the names of secrets.",
        handler=list_all,
        scope=Scope.SECRETS_READ,
        query=PageOnly,
        answers={200: Page[wire.Secret]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path="/v1/secrets/{secret}",
        name="secrets.get",
        says="When and by whom a secret was written; never what it is.",
        handler=read,
        scope=Scope.SECRETS_READ,
        answers={200: wire.SecretShown},
    ),
    Route(
        method="PUT",
        path="/v1/secrets/{secret}",
        name="secrets.put",
        says="Write a secret, as a new version if there is one.",
        handler=put,
        scope=Scope.SECRETS_WRITE,
        body=wire.PutSecret,
        answers={200: wire.Secret, 201: wire.Secret},
        load=Load.WRITE,
        problems=("vault_locked", "quota_exceeded", "conflict"),
        headers=("Location",),
        example={"value": "a-token", "origins": ["https://api.example.com"]},
    ),
    Route(
        method="PATCH",
        path="/v1/secrets/{secret}",
        name="secrets.bind",
        says="Say where a secret may be sent.",
        handler=bind,
        scope=Scope.SECRETS_WRITE,
        body=wire.BindSecret,
        answers={200: wire.Secret},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        example={"origins": ["https://api.example.com", "https://*.example.org"]},
    ),
    Route(
        method="DELETE",
        path="/v1/secrets/{secret}",
        name="secrets.delete",
        says="Forget a secret with all its versions.",
        handler=delete,
        scope=Scope.SECRETS_WRITE,
        answers={204: None},
        load=Load.VITAL,
    ),
    Route(
        method="DELETE",
        path="/v1/secrets/{secret}/versions/{version}",
        name="secrets.delete_version",
        says="Forget one version of a secret.",
        handler=delete_version,
        scope=Scope.SECRETS_WRITE,
        answers={204: None},
        load=Load.VITAL,
    ),
)
