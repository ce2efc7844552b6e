"""Alert rules, what they have found, and silences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from betimes.domain.alert import AlertState, check_rule
from betimes.domain.errors import Invalid, NotFound, OverQuota, VersionMismatch
from betimes.domain.ids import TenantId, from_text, random_ids, shard_of, to_ms
from betimes.ops.checks import check_name, check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import alerts as rows
from betimes.store.alerts import Alert, Rule, Silence
from betimes.store.endpoints import read_endpoint
from betimes.store.pool import Connection
from betimes.store.watching import tenants_of

__all__ = [
    "Alert",
    "AlertState",
    "Rule",
    "Silence",
    "StoredRule",
    "delete_rule",
    "end_silence",
    "find_rule",
    "get_rule",
    "list_alerts",
    "list_rules",
    "list_silences",
    "new_silence",
    "put_rule",
    "silence",
]


@dataclass(frozen=True, slots=True)
class StoredRule:
    """A rule after it was written."""

    rule: Rule
    created: bool


async def list_rules(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[Rule]:
    """A page of rules."""

    async def work(connection: Connection) -> list[Rule]:
        return await rows.list_rules(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def find_rule(desk: Desk, tenant: TenantId, name: str) -> Rule | None:
    """One rule, if there is one."""

    async def work(connection: Connection) -> Rule | None:
        return await rows.read_rule(connection, tenant, name)

    return await desk.transact(work, tenant=tenant)


async def get_rule(desk: Desk, tenant: TenantId, name: str) -> Rule:
    """One rule."""
    found = await find_rule(desk, tenant, name)
    if found is None:
        raise NotFound("there is no such rule")
    return found


async def put_rule(desk: Desk, rule: Rule, *, replaces: int | None, most: int) -> StoredRule:
    """Make a rule, or replace it; a new one looks at once. What was open of it ends, untold."""
    check_name(rule.name)
    check_rule(
        rule.condition,
        threshold=rule.threshold,
        window=rule.window,
        hold=rule.hold,
        jobs=len(rule.jobs),
        queues=len(rule.queues),
        tags=len(rule.tags),
    )

    async def work(connection: Connection) -> StoredRule:
        now = await desk.now(connection)
        fresh = replace(rule, updated_at=now)
        await _check_named(connection, desk, fresh)
        if replaces is None:
            if await rows.count_rules(connection, rule.tenant) >= most:
                raise OverQuota(f"a tenant has at most {most} alert rules")
        else:
            await rows.end_alerts(connection, rule.tenant, rule.name, now=now)
        revision = await rows.put_rule(connection, fresh, replaces=replaces)
        if revision is None:
            found = await rows.read_rule(connection, rule.tenant, rule.name)
            if found is None or found.updated_at != now:
                raise VersionMismatch("the rule was changed meanwhile; read it again")
            revision = found.revision
        return StoredRule(replace(fresh, revision=revision), created=replaces is None)

    return await desk.transact(work, tenant=rule.tenant)


async def _check_named(connection: Connection, desk: Desk, rule: Rule) -> None:
    """Everything a rule names exists, and is the tenant's."""
    for place, job in enumerate(rule.jobs):
        known = shard_of(job) < desk.shards and await tenants_of(connection, [job])
        if not known or known.get(job) != rule.tenant:
            raise Invalid("there is no such job", pointer=f"/jobs/{place}")
    for place, target in enumerate(rule.targets):
        endpoint = await read_endpoint(connection, rule.tenant, _endpoint_id(target, place))
        if endpoint is None:
            raise Invalid("there is no such endpoint", pointer=f"/targets/{place}")


def _endpoint_id(text: str, place: int) -> UUID:
    try:
        return from_text("ep", text)
    except Invalid:
        raise Invalid(
            f"expected the id of an endpoint, got {text[:50]!r}", pointer=f"/targets/{place}"
        ) from None


async def delete_rule(desk: Desk, tenant: TenantId, name: str) -> None:
    """Forget a rule; what is open of it ends, untold."""

    async def work(connection: Connection) -> None:
        now = await desk.now(connection)
        await rows.delete_rule(connection, tenant, name, now=now)

    await desk.transact(work, tenant=tenant)


async def list_alerts(
    desk: Desk,
    tenant: TenantId,
    *,
    before: UUID,
    states: Sequence[AlertState],
    rule: str | None,
    most: int,
) -> list[Alert]:
    """A page of episodes, newest first."""

    async def work(connection: Connection) -> list[Alert]:
        return await rows.list_alerts(
            connection, tenant, before=before, states=states, rule=rule, most=most
        )

    return await desk.transact(work, tenant=tenant)


def new_silence(
    desk: Desk,
    *,
    rule: str | None,
    subject: str | None,
    reason: str,
    until: datetime,
    by: str | None,
) -> Silence:
    """A silence as it will be kept."""
    if rule is None and subject is None:
        raise Invalid("expected a rule or a subject to be silent about, got neither")
    check_text(reason, what="a reason", most=1_000, pointer="/reason")
    now = desk.clock.now()
    if until <= now:
        raise Invalid("expected a time in the future", code="time_in_past", pointer="/until")
    (identity,) = random_ids(to_ms(now), 0, desk.entropy(TAIL_BYTES))
    return Silence(
        id=identity,
        rule=rule,
        subject=subject,
        reason=reason,
        until=until,
        created_at=now,
        created_by=by,
    )


async def silence(desk: Desk, tenant: TenantId, wanted: Silence) -> Silence:
    """Tell nobody for a while; what still holds when it ends is told then."""

    async def work(connection: Connection) -> Silence:
        await rows.insert_silence(connection, tenant, wanted)
        return wanted

    return await desk.transact(work, tenant=tenant)


async def list_silences(desk: Desk, tenant: TenantId, *, after: UUID, most: int) -> list[Silence]:
    """A page of silences that are not over."""

    async def work(connection: Connection) -> list[Silence]:
        now = await desk.now(connection)
        return await rows.list_silences(connection, tenant, now=now, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def end_silence(desk: Desk, tenant: TenantId, identity: UUID) -> None:
    """End a silence before its time."""

    async def work(connection: Connection) -> None:
        if not await rows.delete_silence(connection, tenant, identity):
            raise NotFound("there is no such silence")

    await desk.transact(work, tenant=tenant)
