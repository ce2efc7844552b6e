"""Blobs: payloads and results by reference."""

from datetime import timedelta

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.grants import Grant, read_grant, write_grant
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, NoQuery, Policy, Route
from betimes.api.shaping import maybe_span, missing, read_id, read_span
from betimes.domain.errors import Forbidden, Invalid, NotFound
from betimes.domain.ids import shard_of, to_text
from betimes.domain.scopes import Scope
from betimes.ops import blobs as ops
from betimes.ops.acting import Told
from betimes.ops.credentials import Unknown
from betimes.ops.desk import Desk
from betimes.wire import queues as wire
from betimes.wire.base import shown_duration, shown_instant, shown_maybe

DEFAULT_MEDIA = "application/octet-stream"
GRANT_MAX = timedelta(days=7)


async def create(call: Call[wire.NewBlob, bytes]) -> Reply:
    """Keep a body as it is; its id can stand as `payload_ref`."""
    desk, query = call.service.desk, call.query
    blob = ops.new_blob(
        desk,
        call.body,
        media_type=call.request.header(b"content-type") or DEFAULT_MEDIA,
        ttl=maybe_span(query.ttl, pointer="/ttl"),
        retention=query.retention,
    )
    row = await ops.sealed_blob(desk, call.tenant, blob)

    async def verb(inner: Desk) -> ops.BlobRow:
        return await ops.create_blob(inner, call.tenant, row)

    try:
        reply = await perform(call, verb, _told)
    except BaseException:
        await ops.unshelve(desk, row)
        raise
    if "Idempotent-Replayed" in reply.headers:
        await ops.unshelve(desk, row)
    return reply


def _told(blob: ops.BlobRow) -> Told:
    text = to_text("blob", blob.id)
    shown = wire.Blob(
        id=text,
        size=blob.size,
        media_type=blob.media_type,
        retention=blob.retention,
        created_at=shown_instant(blob.created_at),
        expires_at=shown_maybe(blob.expires_at),
    )
    return Told(
        answer=answer(201, shown, headers={"Location": f"/v1/blobs/{text}"}),
        resource=text,
        shard=shard_of(blob.id),
        after={"size": blob.size},
    )


async def read(call: Call[NoQuery, None]) -> Reply:
    """A blob as it was given; never shown inside a page."""
    text = call.path["blob"]
    identity = read_id(call.service.desk, "blob", text, "blob")
    try:
        return _content(await ops.get_blob(call.service.desk, call.tenant, identity))
    except NotFound:
        raise missing("blob", text) from None


async def grant(call: Call[NoQuery, wire.NewGrant]) -> Reply:
    """A link that reads one blob without a key, until it expires."""
    text = call.path["blob"]
    identity = read_id(call.service.desk, "blob", text, "blob")
    lasts = read_span(call.body.expires_in, pointer="/expires_in")
    if not timedelta(0) < lasts <= GRANT_MAX:
        raise Invalid(
            f"expected at most {GRANT_MAX.days} days, got {shown_duration(lasts)}",
            pointer="/expires_in",
        )
    try:
        await ops.get_blob_row(call.service.desk, call.tenant, identity)
    except NotFound:
        raise missing("blob", text) from None
    given = Grant(call.tenant, identity, call.service.now() + lasts, call.caller.key)
    token = write_grant(call.service.grant_secret, given)

    async def verb(_: Desk) -> str:
        return token

    def told(token: str) -> Told:
        shown = wire.Grant(
            grant=token, path=f"/v1/grants/{token}", expires_at=shown_instant(given.until)
        )
        return Told(
            answer=answer(201, shown),
            resource=text,
            shard=shard_of(identity),
            after={"granted_until": shown_instant(given.until)},
        )

    return await perform(call, verb, told)


async def read_granted(call: Call[NoQuery, None]) -> Reply:
    """The blob of a grant; whoever has the link may read it."""
    given = read_grant(call.service.grant_secret, call.path["grant"], now=call.service.now())
    try:
        await call.service.credentials.check_giver(given.tenant, given.by)
    except (Unknown, Forbidden):  # whoever has a link is told nothing about the tenant
        raise missing("grant", "") from None
    try:
        return _content(await ops.get_blob(call.service.desk, given.tenant, given.blob))
    except NotFound:
        raise missing("grant", "") from None


def _content(blob: ops.Blob) -> Reply:
    return Reply(
        content=blob.content,
        media=blob.media_type,
        headers={"Content-Disposition": "attachment", "Content-Security-Policy": "sandbox"},
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/blobs",
        name="blobs.create",
        says="Keep a body as it is, to be referred to.",
        handler=create,
        scope=Scope.BLOBS_WRITE,
        query=wire.NewBlob,
        body=bytes,
        media="*/*",
        body_max=BATCH_BYTES_MAX,
        answers={201: wire.Blob},
        keyed=Keyed.OPTIONAL,
        load=Load.CREATE,
        policy=Policy.BULK,
        headers=("Location",),
    ),
    Route(
        method="GET",
        path="/v1/blobs/{blob}",
        name="blobs.get",
        says="A blob as it was given.",
        handler=read,
        scope=Scope.BLOBS_READ,
        answers={200: bytes},
        answer_media="*/*",
    ),
    Route(
        method="POST",
        path="/v1/blobs/{blob}/grants",
        name="blobs.grant",
        says="Make a link that reads one blob until it expires, without a key.",
        handler=grant,
        scope=Scope.BLOBS_READ,
        body=wire.NewGrant,
        body_optional=True,
        answers={201: wire.Grant},
        load=Load.WRITE,
    ),
    Route(
        method="GET",
        path="/v1/grants/{grant}",
        name="blobs.read_granted",
        says="The blob of a link.",
        handler=read_granted,
        scope=None,
        answers={200: bytes},
        answer_media="*/*",
        problems=("not_found", "vault_locked"),
    ),
)
