"""Blobs: payloads and results by reference."""

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.route import BATCH_BYTES_MAX, Keyed, Load, NoQuery, Policy, Route
from betimes.api.shaping import missing, read_id, read_span
from betimes.domain.errors import NotFound
from betimes.domain.ids import shard_of, to_text
from betimes.domain.scopes import Scope
from betimes.ops import blobs as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import queues as wire
from betimes.wire.base import shown_instant, shown_maybe

DEFAULT_MEDIA = "application/octet-stream"


async def create(call: Call[wire.NewBlob, bytes]) -> Reply:
    """Keep a body as it is; its id can stand as `payload_ref`."""
    blob = ops.new_blob(
        call.service.desk,
        call.body,
        media_type=call.request.header(b"content-type") or DEFAULT_MEDIA,
        ttl=read_span(call.query.ttl, pointer="/ttl"),
    )

    async def verb(desk: Desk) -> ops.Blob:
        return await ops.create_blob(desk, call.tenant, blob)

    return await perform(call, verb, _told)


def _told(blob: ops.Blob) -> Told:
    text = to_text("blob", blob.id)
    shown = wire.Blob(
        id=text,
        size=blob.size,
        media_type=blob.media_type,
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
        blob = await ops.get_blob(call.service.desk, call.tenant, identity)
    except NotFound:
        raise missing("blob", text) from None
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
)
