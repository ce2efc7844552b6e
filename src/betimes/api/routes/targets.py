"""Targets: the origins that jobs call, and what requests are signed with."""

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged
from betimes.domain.errors import NotFound
from betimes.domain.scopes import Scope
from betimes.domain.webhook import shown_secret
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.targets import BreakerRow, list_origins, reset_origin
from betimes.target.gate import BreakerState
from betimes.wire import targets as wire
from betimes.wire.base import Page, shown_maybe
from betimes.wire.keys import PageOnly


def shown_origin(row: BreakerRow) -> wire.Origin:
    """An origin as it is shown."""
    return wire.Origin(
        origin=row.origin,
        state=BreakerState(row.state).name.lower(),
        failures=row.failures,
        opened_at=shown_maybe(row.opened_at),
        next_probe_at=shown_maybe(row.probe_at),
        seen=dict(row.facts),
        updated_at=shown_maybe(row.updated_at),
    )


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of origins."""
    scope = ("targets", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await list_origins(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].origin])
    return paged(call, page([shown_origin(row) for row in found], cursor=cursor))


async def reset(call: Call[NoQuery, wire.ResetTarget]) -> Reply:
    """Close the breaker of an origin by hand."""
    origin = call.body.origin.rstrip("/")

    async def verb(desk: Desk) -> BreakerRow:
        try:
            return await reset_origin(desk, call.tenant, origin)
        except NotFound:
            raise missing("target", origin) from None

    return await perform(
        call,
        verb,
        lambda row: Told(
            answer=answer(200, shown_origin(row)),
            resource=f"target:{row.origin}",
            after={"state": "closed"},
        ),
    )


async def signing_secret(call: Call[NoQuery, None]) -> Reply:
    """The secrets that receivers check requests with."""
    secrets = call.service.signing(call.tenant)
    if not secrets:
        raise Trouble("not_found", "requests are not signed here", resource_type="secret")
    return Reply(value=wire.SigningSecret(secrets=[shown_secret(one) for one in secrets]))


ROUTES = (
    Route(
        method="POST",
        path="/v1/targets/reset",
        name="targets.reset",
        says="Close the breaker of an origin by hand; it is asked for little at first.",
        handler=reset,
        scope=Scope.RUNS_WRITE,
        body=wire.ResetTarget,
        answers={200: wire.Origin},
        keyed=Keyed.OPTIONAL,
        load=Load.VITAL,
        problems=("not_found",),
        example={"origin": "https://example.com"},
    ),
    Route(
        method="GET",
        path="/v1/targets",
        name="targets.list",
        says="List the origins that jobs call, with their breakers and limits.",
        handler=list_all,
        scope=Scope.JOBS_READ,
        query=PageOnly,
        answers={200: Page[wire.Origin]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path="/v1/targets/signing-secret",
        name="targets.signing_secret",
        says="Read what requests to targets are signed with.",
        handler=signing_secret,
        scope=Scope.KEYS_WRITE,
        answers={200: wire.SigningSecret},
        problems=("not_found",),
    ),
)
