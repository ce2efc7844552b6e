"""Tenants, for administrators; quotas, for everybody."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.etag import expected_revision, tag_of
from betimes.api.merging import merge_patch
from betimes.api.operating import begin
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, page, paged, read_span
from betimes.domain.ids import TenantId, to_text
from betimes.domain.scopes import Scope
from betimes.ops import tenants as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.erase import deletion_of
from betimes.ops.quotas import soft_limit, usage_of
from betimes.ops.tenant_settings import check_settings
from betimes.wire import keys as wire
from betimes.wire.base import Page, shown_instant
from betimes.wire.operations import Operation

"""Of a limit: from here on it is worth looking at."""


def shown_tenant(tenant: ops.Tenant) -> wire.Tenant:
    """A tenant as it is shown."""
    return wire.Tenant(
        id=to_text("ten", tenant.id),
        slug=tenant.slug,
        name=tenant.name,
        timezone=tenant.timezone,
        plan=tenant.plan,
        state=tenant.state.name.lower(),
        state_reason=tenant.state_reason,
        weight=tenant.weight,
        quotas=dict(tenant.quotas),
        settings=dict(tenant.settings),
        revision=tenant.revision,
        created_at=shown_instant(tenant.created_at),
        updated_at=shown_instant(tenant.updated_at),
    )


def _told(tenant: ops.Tenant, *, status: int = 200) -> Told:
    shown = shown_tenant(tenant)
    headers = {"ETag": tag_of(tenant.revision)}
    if status == 201:  # noqa: PLR2004 -- created
        headers["Location"] = f"/v1/tenants/{tenant.slug}"
    return Told(
        answer=answer(status, shown, headers=headers),
        resource=shown.id,
        after={"revision": tenant.revision, "state": shown.state},
    )


async def create(call: Call[NoQuery, wire.NewTenant]) -> Reply:
    """Make a tenant."""
    body = call.body
    check_settings(body.settings, keys_kept=call.service.keys_kept)
    fresh = ops.new_tenant(
        call.service.desk,
        slug=body.slug,
        name=body.name,
        timezone=body.timezone,
        plan=body.plan,
        weight=body.weight,
        quotas=body.quotas,
        settings=body.settings,
    )

    async def verb(desk: Desk) -> ops.Tenant:
        return await ops.create_tenant(desk, fresh)

    return await perform(call, verb, lambda made: _told(made, status=201), as_system=True)


async def list_all(call: Call[wire.PageOnly, None]) -> Reply:
    """A page of tenants by slug."""
    scope = ("tenants",)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    tenants = await ops.list_tenants(call.service.desk, after=after, most=limit)
    cursor = None
    if len(tenants) == limit:
        cursor = call.leaves.write(scope, [tenants[-1].slug])
    return paged(call, page([shown_tenant(one) for one in tenants], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One tenant."""
    tenant = await _found(call)
    return Reply(value=shown_tenant(tenant), headers={"ETag": tag_of(tenant.revision)})


async def _found(call: Call[Any, Any]) -> ops.Tenant:
    return await ops.get_tenant(call.service.desk, call.path["tenant"])


async def change(call: Call[NoQuery, wire.ChangeTenant]) -> Reply:
    """Change a tenant by a merge patch; what is left out stays, a null among members removes."""
    tenant, body = await _found(call), call.body
    expected_revision(call.request, tenant.revision)
    said = {
        name: value
        for name in ("name", "timezone", "plan", "weight")
        if (value := getattr(body, name)) is not None
    }
    quotas = merge_patch(tenant.quotas, body.quotas or {})
    settings = merge_patch(tenant.settings, body.settings or {})
    # What comes of the patch is judged, so that a null removes whatever is there.
    said_now = {name: settings[name] for name in body.settings or {} if name in settings}
    check_settings(said_now, keys_kept=call.service.keys_kept)
    return await _store(call, replace(tenant, quotas=quotas, settings=settings, **said))


async def _store(call: Call[Any, Any], tenant: ops.Tenant) -> Reply:
    async def verb(desk: Desk) -> ops.Tenant:
        return await ops.change_tenant(desk, tenant)

    reply = await perform(call, verb, _told, as_system=True)
    call.service.credentials.forget_all()
    call.service.sessions.forget_all()
    return reply


async def suspend(call: Call[NoQuery, wire.Suspend]) -> Reply:
    """Close a tenant for new things, or for everything."""
    stop_all = call.body.mode == "stop_all"
    found = await _found(call)
    expected_revision(call.request, found.revision)
    tenant = ops.suspended(found, reason=call.body.reason, stop_all=stop_all)
    return await _store(call, tenant)


async def resume(call: Call[NoQuery, None]) -> Reply:
    """Open a tenant again."""
    found = await _found(call)
    expected_revision(call.request, found.revision)
    return await _store(call, ops.resumed(found))


async def set_quotas(call: Call[NoQuery, wire.Quotas]) -> Reply:
    """Replace the quotas of a tenant."""
    tenant = await _found(call)
    expected_revision(call.request, tenant.revision)
    return await _store(call, replace(tenant, quotas=call.body.quotas))


async def read_quotas(call: Call[NoQuery, None]) -> Reply:
    """Every limit of a tenant, and how much of it is used."""
    tenant = await _found(call)
    shown = await _quotas(call, tenant.id, _numbers(tenant.quotas))
    return Reply(value=shown, headers={"ETag": tag_of(tenant.revision)})


def _numbers(quotas: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in quotas.items() if isinstance(value, int)}


async def delete(call: Call[wire.DeleteTenant, None]) -> Reply:
    """Delete a suspended tenant with all its data, when the grace is over."""
    tenant = await _found(call)
    expected_revision(call.request, tenant.revision)
    grace = read_span(call.query.grace, pointer="/grace")
    operation = deletion_of(
        call.service.desk, tenant, of=call.tenant, by=call.caller.key, grace=grace
    )
    return await begin(call, operation)


async def quotas(call: Call[NoQuery, None]) -> Reply:
    """Every limit of the caller's tenant, and how much of it is used."""
    return Reply(value=await _quotas(call, call.tenant, call.caller.quotas))


async def _quotas(
    call: Call[Any, Any], tenant: TenantId, limits: Mapping[str, int]
) -> wire.QuotaList:
    service, now = call.service, call.service.now()
    used = await usage_of(service.desk, tenant)
    flows = service.meter.flow(service.desk, tenant, limits)
    rates = service.admission.usage(tenant, limits)
    items: list[wire.QuotaShown] = []
    for name in sorted({*ops.QUOTAS, *used, *rates}):
        shown = wire.QuotaShown(name=name, limit=limits.get(name), used=used.get(name))
        if (flow := flows.get(name)) is not None:
            shown.used, shown.resets_at = flow.used, shown_instant(flow.resets_at)
        elif (rate := rates.get(name)) is not None:
            shown.limit, shown.used = rate.limit, rate.used
            if rate.resets_in is not None:
                shown.resets_at = shown_instant(now + timedelta(seconds=rate.resets_in))
        if shown.limit is not None:
            shown.soft_limit = soft_limit(shown.limit)
        items.append(shown)
    return wire.QuotaList(items=items)


def _route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    given: dict[str, Any] = {
        "scope": Scope.TENANTS_ADMIN,
        "answers": {200: wire.Tenant},
        "load": Load.READ if method == "GET" else Load.WRITE,
        **more,
    }
    return Route(method=method, path=path, name=name, says=says, handler=handler, **given)


ONE = "/v1/tenants/{tenant}"
ROUTES = (
    _route(
        "GET",
        "/v1/tenants",
        "tenants.list",
        "List tenants.",
        list_all,
        query=wire.PageOnly,
        answers={200: Page[wire.Tenant]},
        problems=("cursor_invalid",),
    ),
    _route(
        "POST",
        "/v1/tenants",
        "tenants.create",
        "Make a tenant.",
        create,
        body=wire.NewTenant,
        answers={201: wire.Tenant},
        problems=("already_exists", "unknown_timezone"),
        headers=("ETag", "Location"),
    ),
    _route("GET", ONE, "tenants.get", "Read one tenant.", read, headers=("ETag",)),
    _route(
        "PATCH",
        ONE,
        "tenants.update",
        "Change a tenant.",
        change,
        body=wire.ChangeTenant,
        keyed=Keyed.NO,
        problems=("precondition_failed", "unknown_timezone"),
        headers=("ETag",),
    ),
    _route(
        "POST",
        f"{ONE}/suspend",
        "tenants.suspend",
        "Close a tenant for new things, or for everything.",
        suspend,
        body=wire.Suspend,
        body_optional=True,
        problems=("precondition_failed",),
    ),
    _route(
        "POST",
        f"{ONE}/resume",
        "tenants.resume",
        "Open a tenant again.",
        resume,
        problems=("precondition_failed",),
    ),
    _route(
        "DELETE",
        ONE,
        "tenants.delete",
        "Delete a suspended tenant with all its data, as an operation that begins after a grace.",
        delete,
        query=wire.DeleteTenant,
        answers={202: Operation},
        headers=("Location",),
        problems=("invalid_state", "dependency_in_use", "precondition_failed"),
    ),
    _route(
        "GET",
        f"{ONE}/quotas",
        "tenants.get_quotas",
        "Every limit of a tenant, and how much of it is used.",
        read_quotas,
        answers={200: wire.QuotaList},
        headers=("ETag",),
    ),
    _route(
        "PUT",
        f"{ONE}/quotas",
        "tenants.set_quotas",
        "Replace the quotas of a tenant.",
        set_quotas,
        body=wire.Quotas,
        problems=("precondition_failed",),
    ),
    _route(
        "GET",
        "/v1/quotas",
        "quotas.list",
        "Every limit of the tenant, and how much of it is used.",
        quotas,
        scope=Scope.USAGE_READ,
        answers={200: wire.QuotaList},
    ),
)
