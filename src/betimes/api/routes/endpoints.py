"""Endpoints: who wants to be told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.context import targets_of
from betimes.api.endpoint_shapes import FULL, kept_rate, shown_endpoint
from betimes.api.etag import expected_revision, tag_of
from betimes.api.problem import Trouble
from betimes.api.rights import require
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged, read_span
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.event import Severity
from betimes.domain.ids import from_text, to_text
from betimes.domain.scopes import Scope
from betimes.ops import endpoints as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.target.url import read_url
from betimes.wire import endpoints as wire
from betimes.wire.base import Page
from betimes.wire.problem import FieldError

FIRST = UUID(int=0)
HIDDEN_PATH = "/…"


def _check_payload(call: Call[Any, Any], settings: Mapping[str, Any]) -> None:
    """Whoever lets payloads be sent must be allowed to read them: where to, and what of.

    The settings are those there will be, so that nobody moves an endpoint that others have made.
    """
    if settings.get("payload") == FULL:
        require(call, Scope.PAYLOADS_READ, f"an endpoint with the payload {FULL}")


async def list_all(call: Call[wire.ListEndpoints, None]) -> Reply:
    """A page of endpoints."""
    query = call.query
    scope = ("endpoints", call.tenant, query.callbacks)
    after = FIRST
    if query.cursor is not None:
        after = msgspec.convert(call.leaves.read(scope, query.cursor)[0], type=UUID)
    limit = coerced(query.limit)
    found = await ops.list_endpoints(
        call.service.desk, call.tenant, after=after, callbacks=query.callbacks, most=limit
    )
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1][0].id)])
    return paged(call, page([shown_endpoint(*one) for one in found], cursor=cursor))


async def found_endpoint(call: Call[Any, Any]) -> tuple[ops.Endpoint, ops.MailboxView | None]:
    """The endpoint of the path."""
    text = call.path["endpoint"]
    try:
        return await ops.get_endpoint(call.service.desk, call.tenant, from_text("ep", text))
    except (Invalid, NotFound):
        raise missing("endpoint", text) from None


async def read(call: Call[NoQuery, None]) -> Reply:
    """One endpoint, and how it fares."""
    endpoint, box = await found_endpoint(call)
    return Reply(value=shown_endpoint(endpoint, box), headers={"ETag": tag_of(endpoint.revision)})


async def create(call: Call[NoQuery, wire.NewEndpoint]) -> Reply:
    """Make an endpoint; a webhook's secret is in the answer, this once."""
    body, notifying = call.body, call.service.notifying
    address, credential = _place(call, body.type, body.url, body.address)
    settings: dict[str, Any] = {"concurrency": body.concurrency, "payload": body.payload}
    _check_payload(call, settings)
    if body.rate is not None:
        settings["rate"] = kept_rate(body.rate)
    if body.type == "chat":
        settings["style"] = body.style
    fresh = ops.new_endpoint(
        call.service.desk,
        call.tenant,
        kind=body.type,
        name=body.name,
        address=address,
        event_types=body.event_types,
        chosen=_filter(body.filter),
        settings=settings,
        disabled=body.disabled,
        by=call.caller.key,
    )
    secret = None
    if body.type == "webhook":
        secret = ops.secret_of(notifying.secret_key, fresh.id, fresh.secret_version)

    async def verb(desk: Desk) -> ops.Endpoint:
        return await ops.create_endpoint(
            desk, fresh, most=notifying.endpoints_max, credential=credential
        )

    return await perform(call, verb, lambda made: _told(made, status=201, secret=secret))


async def change(call: Call[NoQuery, wire.ChangeEndpoint]) -> Reply:
    """Change what an endpoint wants, where it is, or whether anything is sent to it."""
    endpoint, _ = await found_endpoint(call)
    expected_revision(call.request, endpoint.revision)
    changed, credential = _changed(call, endpoint, call.body)

    async def verb(desk: Desk) -> ops.Endpoint:
        return await ops.change_endpoint(
            desk, endpoint, changed, disabled=call.body.disabled, credential=credential
        )

    return await perform(call, verb, lambda done: _told(done, status=200, before=endpoint))


def _changed(
    call: Call[Any, Any], endpoint: ops.Endpoint, body: wire.ChangeEndpoint
) -> tuple[ops.Endpoint, bytes | None]:
    changed, credential = endpoint, None
    if body.name is not None:
        changed = replace(changed, name=body.name)
    if body.event_types is not None:
        changed = replace(changed, event_types=tuple(dict.fromkeys(body.event_types)))
    if body.filter is not None:
        changed = replace(changed, filter=_filter(body.filter))
    if body.url is not None or body.address is not None:
        address, credential = _place(call, endpoint.kind, body.url, body.address)
        changed = replace(changed, address=address)
    settings: dict[str, Any] = {
        name: value
        for name, value in (("concurrency", body.concurrency), ("payload", body.payload))
        if value is not None
    }
    if body.rate is not msgspec.UNSET:
        settings["rate"] = None if body.rate is None else kept_rate(body.rate)
    if body.style is not None and endpoint.kind == "chat":
        settings["style"] = body.style
    changed = replace(changed, settings={**endpoint.settings, **settings})
    if body != wire.ChangeEndpoint(disabled=True):  # to stop payloads asks for no right to them
        _check_payload(call, changed.settings)
    return changed, credential


def _filter(asked: wire.EventFilter | None) -> ops.Filter:
    if asked is None:
        return ops.Filter()
    return ops.Filter(
        queues=frozenset(asked.queues),
        tags=asked.tags,
        jobs=frozenset(asked.jobs),
        severity=Severity[asked.severity.upper()],
    )


def _place(
    call: Call[Any, Any], kind: str, url: str | None, address: str | None
) -> tuple[str, bytes | None]:
    """Where an endpoint is: what may be shown of it, and what is to be sealed."""
    if kind == "email":
        if address is None or url is not None:
            raise _wrong("/address", "expected an address and no url for mail")
        ops.check_mail(address, call.service.notifying.mail_domains)
        return address, None
    if url is None or address is not None:
        raise _wrong("/url", f"expected a url and no address for a {kind}")
    read = read_url(url, targets_of(call), pointer="/url")
    if kind == "webhook":
        return str(read), None
    return f"{read.origin}{HIDDEN_PATH}", str(read).encode()


def _wrong(pointer: str, sentence: str) -> Trouble:
    error = FieldError(pointer=pointer, code="invalid_parameter", detail=sentence)
    return Trouble("invalid_parameter", sentence, errors=[error])


def _told(
    endpoint: ops.Endpoint,
    *,
    status: int,
    secret: bytes | None = None,
    before: ops.Endpoint | None = None,
) -> Told:
    shown = shown_endpoint(endpoint, None, secret=secret)
    headers = {"ETag": shown.etag}
    if status == 201:  # noqa: PLR2004 -- created
        headers["Location"] = f"/v1/endpoints/{shown.id}"
    return Told(
        answer=answer(status, shown, headers=headers),
        resource=shown.id,
        shard=endpoint.shard,
        before=None if before is None else _traced(before),
        after=_traced(endpoint),
    )


def _traced(endpoint: ops.Endpoint) -> Mapping[str, Any]:
    """What the audit keeps: no address of a chat, no secret."""
    return {
        "revision": endpoint.revision,
        "type": endpoint.kind,
        "to": endpoint.address,
        "disabled": endpoint.disabled_at is not None,
        "secret_version": endpoint.secret_version,
    }


async def remove(call: Call[NoQuery, None]) -> Reply:
    """Forget an endpoint; what waited for it is sent to nobody."""
    endpoint, _ = await found_endpoint(call)
    expected_revision(call.request, endpoint.revision)

    async def verb(desk: Desk) -> ops.Endpoint:
        return await ops.delete_endpoint(desk, endpoint)

    def tell(gone: ops.Endpoint) -> Told:
        text = to_text("ep", gone.id)
        return Told(answer=answer(204), resource=text, shard=gone.shard, before=_traced(gone))

    return await perform(call, verb, tell)


async def rotate(call: Call[NoQuery, wire.RotateSecret | None]) -> Reply:
    """Sign with a new secret; the present one signs beside it for a while."""
    endpoint, _ = await found_endpoint(call)
    expected_revision(call.request, endpoint.revision)
    _check_payload(call, endpoint.settings)
    asked = call.body or wire.RotateSecret()
    overlap = read_span(asked.overlap, pointer="/overlap")
    key = call.service.notifying.secret_key

    async def verb(desk: Desk) -> ops.Endpoint:
        return await ops.rotate_secret(desk, endpoint, overlap=overlap)

    def tell(done: ops.Endpoint) -> Told:
        secret = ops.secret_of(key, done.id, done.secret_version)
        return _told(done, status=200, secret=secret, before=endpoint)

    return await perform(call, verb, tell)


async def enable(call: Call[NoQuery, None]) -> Reply:
    """Send again."""
    endpoint, _ = await found_endpoint(call)
    expected_revision(call.request, endpoint.revision)
    _check_payload(call, endpoint.settings)

    async def verb(desk: Desk) -> ops.Endpoint:
        return await ops.enable_endpoint(desk, endpoint)

    return await perform(call, verb, lambda done: _told(done, status=200, before=endpoint))


COLLECTION, ONE = "/v1/endpoints", "/v1/endpoints/{endpoint}"
ROUTES = (
    Route(
        method="GET",
        path=COLLECTION,
        name="endpoints.list",
        says="List who wants to be told, and how each fares.",
        handler=list_all,
        scope=Scope.NOTIFICATIONS_READ,
        query=wire.ListEndpoints,
        answers={200: Page[wire.Endpoint]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path=COLLECTION,
        name="endpoints.create",
        says="Make an endpoint; the secret of a webhook is in the answer, this once.",
        handler=create,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.NewEndpoint,
        answers={201: wire.Endpoint},
        # The answer has a secret in it, and answers of keyed requests are kept.
        keyed=Keyed.NO,
        load=Load.WRITE,
        problems=("url_not_allowed", "quota_exceeded"),
        headers=("ETag", "Location"),
        example={
            "type": "webhook",
            "url": "https://example.com/hooks/betimes",
            "event_types": ["run.dead", "job.auto_paused", "alert.*"],
            "filter": {"queues": ["mail"], "severity": "warning"},
        },
    ),
    Route(
        method="GET",
        path=ONE,
        name="endpoints.get",
        says="Read one endpoint.",
        handler=read,
        scope=Scope.NOTIFICATIONS_READ,
        answers={200: wire.Endpoint},
        headers=("ETag",),
    ),
    Route(
        method="PATCH",
        path=ONE,
        name="endpoints.update",
        says="Change an endpoint, disable it, or send to it again.",
        handler=change,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.ChangeEndpoint,
        answers={200: wire.Endpoint},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("precondition_failed", "url_not_allowed"),
        headers=("ETag",),
        example={"disabled": False},
    ),
    Route(
        method="DELETE",
        path=ONE,
        name="endpoints.delete",
        says="Forget an endpoint; what waited for it is sent to nobody.",
        handler=remove,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={204: None},
        load=Load.VITAL,
        problems=("precondition_failed",),
    ),
    Route(
        method="POST",
        path=f"{ONE}/rotate-secret",
        name="endpoints.rotate_secret",
        says="Sign with a new secret; the present one signs beside it for a while.",
        handler=rotate,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.RotateSecret,
        body_optional=True,
        answers={200: wire.Endpoint},
        keyed=Keyed.NO,
        load=Load.WRITE,
        problems=("invalid_state", "precondition_failed"),
        headers=("ETag",),
        example={"overlap": "PT24H"},
    ),
    Route(
        method="POST",
        path=f"{ONE}/enable",
        name="endpoints.enable",
        says="Send to an endpoint that was disabled; what waits goes out.",
        handler=enable,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={200: wire.Endpoint},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("precondition_failed",),
        headers=("ETag",),
    ),
)
