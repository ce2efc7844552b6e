"""Alert rules, episodes and silences in the store: rows in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.alert import AlertState, Condition
from betimes.domain.event import Severity
from betimes.domain.ids import JobId, ShardId, TenantId, shard_of
from betimes.domain.spec import from_ms, to_ms
from betimes.store.ask import execute, many, maybe, one
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("alerts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When somebody is to be told that something is not as it should be."""

    tenant: TenantId
    name: str
    condition: Condition
    threshold: float
    window: timedelta
    hold: timedelta
    severity: Severity
    created_at: datetime
    updated_at: datetime
    jobs: tuple[JobId, ...] = ()
    queues: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    """Jobs that carry all of these, besides those that are named."""
    targets: tuple[str, ...] = ()
    disabled: bool = False
    checked_at: datetime | None = None
    revision: int = 1
    created_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlert:
    """An episode that is not over."""

    shard: ShardId
    id: UUID
    subject: str
    state: AlertState
    is_told: bool
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An episode as it is kept."""

    id: UUID
    rule: str
    condition: str
    subject: str
    severity: str
    state: AlertState
    is_told: bool
    value: float
    threshold: float
    since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nobody is told of a rule, or of a subject, for a while."""

    id: UUID
    rule: str | None
    subject: str | None
    reason: str
    until: datetime
    created_at: datetime
    created_by: str | None = None

    def covers(self, rule: str, subject: str) -> bool:
        """Whether it is about this rule and subject; what it does not name it means all of."""
        return self.rule in (None, rule) and self.subject in (None, subject)


async def list_rules(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[Rule]:
    """A page of rules."""
    rows = await many(connection, SQL["list_rules"], tenant=tenant, after=after, most=most)
    return [rule_of(row) for row in rows]


async def read_rule(connection: Connection, tenant: TenantId, name: str) -> Rule | None:
    """One rule."""
    row = await maybe(connection, SQL["read_rule"], tenant=tenant, name=name)
    return None if row is None else rule_of(row)


async def count_rules(connection: Connection, tenant: TenantId) -> int:
    """How many there are."""
    return int((await one(connection, SQL["count_rules"], tenant=tenant))["rules"])


async def put_rule(connection: Connection, rule: Rule, *, replaces: int | None) -> int | None:
    """Store a rule over a revision, or as a new one; its revision, or None on a conflict."""
    given: dict[str, Any] = {
        "tenant": rule.tenant,
        "name": rule.name,
        "condition": rule.condition.value,
        "threshold": rule.threshold,
        "window_ms": to_ms(rule.window),
        "for_ms": to_ms(rule.hold),
        "severity": rule.severity.name.lower(),
        "jobs": list(rule.jobs),
        "queues": list(rule.queues),
        "tags": to_json(rule.tags),
        "targets": list(rule.targets),
        "disabled": rule.disabled,
        "now": rule.updated_at,
    }
    if replaces is None:
        row = await maybe(connection, SQL["insert_rule"], **given, created_by=rule.created_by)
    else:
        row = await maybe(connection, SQL["change_rule"], **given, revision=replaces)
    return None if row is None else int(row["revision"])


async def delete_rule(
    connection: Connection, tenant: TenantId, name: str, *, now: datetime
) -> bool:
    """Forget a rule and end its episodes; False when there is none."""
    await end_alerts(connection, tenant, name, now=now)
    return await maybe(connection, SQL["delete_rule"], tenant=tenant, name=name) is not None


async def end_alerts(connection: Connection, tenant: TenantId, rule: str, *, now: datetime) -> None:
    """End what is open of a rule; nobody is told."""
    await execute(connection, SQL["end_alerts"], tenant=tenant, rule=rule, now=now)


async def due_rules(
    connection: Connection, *, most: int, now: datetime | None
) -> list[tuple[TenantId, str, datetime]]:
    """Rules to be looked at."""
    rows = await many(connection, SQL["due_rules"], most=most, now=now)
    return [(row["tenant_id"], row["name"], row["next_check_at"]) for row in rows]


async def take_rule(
    connection: Connection,
    tenant: TenantId,
    name: str,
    due_at: datetime,
    *,
    next_at: datetime,
    now: datetime,
) -> Rule | None:
    """A rule to look at now; None when somebody else does."""
    row = await maybe(
        connection,
        SQL["take_rule"],
        tenant=tenant,
        name=name,
        due_at=due_at,
        next_at=next_at,
        now=now,
    )
    return None if row is None else rule_of(row)


async def open_alerts(connection: Connection, rule: Rule, *, most: int) -> list[OpenAlert]:
    """What is open of a rule."""
    rows = await many(connection, SQL["open_alerts"], tenant=rule.tenant, rule=rule.name, most=most)
    return [
        OpenAlert(
            shard=row["shard"],
            id=row["id"],
            subject=row["subject"],
            state=AlertState(row["state"]),
            is_told=row["is_told"],
            since=row["since"],
        )
        for row in rows
    ]


async def begin_alert(connection: Connection, alert: Alert, tenant: TenantId) -> bool:
    """Begin an episode; False when one is open."""
    row = await maybe(
        connection,
        SQL["begin_alert"],
        shard=shard_of(alert.id),
        id=alert.id,
        tenant=tenant,
        rule=alert.rule,
        condition=alert.condition,
        subject=alert.subject,
        severity=alert.severity,
        state=int(alert.state),
        is_told=alert.is_told,
        value=alert.value,
        threshold=alert.threshold,
        now=alert.since,
        fired_at=alert.fired_at,
    )
    return row is not None


async def turn_alert(
    connection: Connection,
    alert: OpenAlert,
    *,
    state: AlertState,
    is_told: bool,
    value: float | None,
    now: datetime,
) -> bool:
    """Bring an episode forward; False when somebody else has."""
    row = await maybe(
        connection,
        SQL["turn_alert"],
        shard=alert.shard,
        id=alert.id,
        was=int(alert.state),
        was_told=alert.is_told,
        state=int(state),
        is_told=is_told,
        value=value,
        fired_at=now if state is AlertState.FIRING else None,
        resolved_at=now if state is AlertState.RESOLVED else None,
    )
    return row is not None


async def forget_alert(connection: Connection, alert: OpenAlert) -> None:
    """Forget an episode that came to nothing."""
    await execute(connection, SQL["forget_alert"], shard=alert.shard, id=alert.id)


async def list_alerts(
    connection: Connection,
    tenant: TenantId,
    *,
    before: UUID,
    states: Sequence[AlertState],
    rule: str | None,
    most: int,
) -> list[Alert]:
    """A page of episodes, newest first."""
    rows = await many(
        connection,
        SQL["list_alerts"],
        tenant=tenant,
        before_id=before,
        states=[int(state) for state in states] or None,
        rule=rule,
        most=most,
    )
    return [
        Alert(
            id=row["id"],
            rule=row["rule"],
            condition=row["condition"],
            subject=row["subject"],
            severity=row["severity"],
            state=AlertState(row["state"]),
            is_told=row["is_told"],
            value=row["value"],
            threshold=row["threshold"],
            since=row["since"],
            fired_at=row["fired_at"],
            resolved_at=row["resolved_at"],
        )
        for row in rows
    ]


async def list_silences(
    connection: Connection, tenant: TenantId, *, now: datetime, after: UUID, most: int
) -> list[Silence]:
    """Silences that are not over."""
    rows = await many(
        connection, SQL["list_silences"], tenant=tenant, now=now, after=after, most=most
    )
    return [
        Silence(
            id=row["id"],
            rule=row["rule"],
            subject=row["subject"],
            reason=row["reason"],
            until=row["until"],
            created_at=row["created_at"],
            created_by=row["created_by"],
        )
        for row in rows
    ]


async def insert_silence(connection: Connection, tenant: TenantId, silence: Silence) -> None:
    """Keep a silence."""
    await execute(
        connection,
        SQL["insert_silence"],
        tenant=tenant,
        id=silence.id,
        rule=silence.rule,
        subject=silence.subject,
        reason=silence.reason,
        until=silence.until,
        now=silence.created_at,
        created_by=silence.created_by,
    )


async def delete_silence(connection: Connection, tenant: TenantId, silence: UUID) -> bool:
    """End a silence; False when there is none."""
    return await maybe(connection, SQL["delete_silence"], tenant=tenant, id=silence) is not None


def rule_of(row: asyncpg.Record | Mapping[str, Any]) -> Rule:
    """A row as a rule."""
    return Rule(
        tenant=row["tenant_id"],
        name=row["name"],
        condition=Condition(row["condition"]),
        threshold=row["threshold"],
        window=from_ms(row["window_ms"]),
        hold=from_ms(row["for_ms"]),
        severity=Severity[row["severity"].upper()],
        jobs=tuple(row["jobs"]),
        queues=tuple(row["queues"]),
        tags=dict(from_json(row["tags"])),
        targets=tuple(row["targets"]),
        disabled=row["disabled"],
        checked_at=row["checked_at"],
        revision=row["revision"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        updated_at=row["updated_at"],
    )
