"""The watcher: looks at alert rules, and tells when their conditions begin and cease to hold.

A rule is taken by moving its next look on, so of many watchers one looks. What a look changes, an
episode and the event that tells of it, is one transaction, guarded by the state that was read: an
episode fires once and resolves once, whoever dies in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.config.notify import NotifySettings
from betimes.domain.alert import FIRE, RESOLVE, AlertState, Condition, Episode, Finding, Turn, turn
from betimes.domain.clock import Clock
from betimes.domain.event import FIRING, RESOLVED
from betimes.domain.ids import (
    TAIL_BYTES,
    ShardId,
    from_text,
    random_ids,
    shard_of_key,
    to_ms,
    to_text,
)
from betimes.rhythm import Stopping, attend, beat
from betimes.store import alerts as rows
from betimes.store.alerts import Alert, OpenAlert, Rule, Silence
from betimes.store.database import Database
from betimes.store.deliveries import tell
from betimes.store.pool import Connection, Lane
from betimes.store.server import read_clock
from betimes.store.watching import SUBJECTS_MAX, findings, names_of
from betimes.telemetry import Items, Outage, Telemetry
from betimes.wire.base import shown_instant

RULES_PER_PAGE = 50
PAGES_MAX = 40
LOOKS_PER_PERIOD = 4
SILENCES_MAX = 1_000
FIRST = UUID(int=0)
ALSO = {
    (Condition.JOB_LATE, FIRE): "run.late",
    (Condition.QUEUE_LAG, FIRE): "queue.lagging",
    (Condition.QUEUE_LAG, RESOLVE): "queue.recovered",
}
"""Conditions that are events by themselves, for those who listen to jobs and queues."""
ALSO_TELLS = frozenset({"job_id", "queue", "name", "rule", "value", "threshold"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One subject of a rule at one look."""

    rule: Rule
    subject: str
    episode: OpenAlert | None
    finding: Finding | None
    now: datetime
    name: str | None = None


class Watcher:
    """Looks at rules when their time has come."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        telemetry: Telemetry,
        settings: NotifySettings,
        shards: int,
        entropy: Callable[[int], bytes],
    ) -> None:
        self._database = database
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._shards = shards
        self._entropy = entropy
        self._outage = Outage(duty="dispatcher.watcher", telemetry=telemetry)
        self._rules = Items(duty="dispatcher.watcher", telemetry=telemetry)
        self._fired = telemetry.counter("betimes_alerts_fired_total")

    async def run(self, stopping: Stopping) -> None:
        """Look until asked to stop."""
        # More often than each rule is looked at, so that rules are spread over the period.
        every = max(self._settings.watch_every / LOOKS_PER_PERIOD, timedelta(seconds=1))
        beats = beat(self._clock, every=every, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One pass; how many rules were looked at."""
        with self._telemetry.span("watcher.tick") as span:
            span.expect_errors()
            looked = 0
            for _ in range(PAGES_MAX):
                # What is postponed is still due, and must not take the place of others.
                most = RULES_PER_PAGE + len(self._rules.postponed)
                page = await self._due(most)
                looked += sum(await self._rules.each(page, lambda rule: self._look(*rule)))
                if len(page) < most:
                    break
            span.add(rules=looked)
        return looked

    async def _due(self, most: int) -> list[tuple[Any, str, datetime]]:
        async def work(connection: Connection) -> list[tuple[Any, str, datetime]]:
            return await rows.due_rules(connection, most=most, now=self._clock.stated())

        return await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _look(self, tenant: Any, name: str, due_at: datetime) -> int:
        now = self._clock.stated() or await read_clock(self._database)

        async def work(connection: Connection) -> tuple[int, list[str]]:
            rule = await rows.take_rule(
                connection,
                tenant,
                name,
                due_at,
                next_at=now + self._settings.watch_every,
                now=now,
            )
            return (0, []) if rule is None else (1, await self._watch(connection, rule, now))

        # Not repeated: a rule whose look was lost is looked at again a period later.
        looked, fired = await self._database.transact(work, lane=Lane.ENGINE, repeatable=False)
        for condition in fired:
            self._fired.add(condition=condition)
        return looked

    async def _watch(self, connection: Connection, rule: Rule, now: datetime) -> list[str]:
        """One look; the condition once for each alert that began to be told."""
        episodes = {
            one.subject: one
            for one in await rows.open_alerts(connection, rule, most=2 * SUBJECTS_MAX)
        }
        found = {
            one.subject: one
            for one in await findings(connection, rule, now=now, open_subjects=list(episodes))
        }
        silences = await rows.list_silences(
            connection, rule.tenant, now=now, after=FIRST, most=SILENCES_MAX
        )
        subjects = sorted({*episodes, *found})
        names = await _names(connection, subjects)
        fired = []
        for subject in subjects:
            seen = Seen(
                rule=rule,
                subject=subject,
                episode=episodes.get(subject),
                finding=found.get(subject),
                now=now,
                name=names.get(subject),
            )
            if await self._turn(connection, seen, silences):
                fired.append(rule.condition.value)
        return fired

    async def _turn(self, connection: Connection, seen: Seen, silences: Sequence[Silence]) -> bool:
        episode = seen.episode
        decided = turn(
            None
            if episode is None
            else Episode(state=episode.state, since=episode.since, is_told=episode.is_told),
            holds=seen.finding is not None,
            silenced=any(one.covers(seen.rule.name, seen.subject) for one in silences),
            hold=seen.rule.hold,
            now=seen.now,
        )
        if decided is None:
            return False
        if episode is None:
            alert = self._fresh(seen, decided)
            if not await rows.begin_alert(connection, alert, seen.rule.tenant):
                return False
            identity, since = alert.id, seen.now
        elif decided.forget:
            await rows.forget_alert(connection, episode)
            return False
        else:
            identity, since = episode.id, episode.since
            if not await rows.turn_alert(
                connection,
                episode,
                state=decided.state,
                is_told=decided.is_told,
                value=None if seen.finding is None else seen.finding.value,
                now=seen.now,
            ):
                return False
        if decided.tell is not None:
            await self._tell(connection, seen, decided.tell, identity, since)
        return decided.tell == FIRE

    def _fresh(self, seen: Seen, decided: Turn) -> Alert:
        rule = seen.rule
        shard = shard_of_key(self._shards, str(rule.tenant), rule.name, seen.subject)
        return Alert(
            id=self._fresh_id(shard, seen.now),
            rule=rule.name,
            condition=rule.condition.value,
            subject=seen.subject,
            severity=rule.severity.name.lower(),
            state=decided.state,
            is_told=decided.is_told,
            value=0.0 if seen.finding is None else seen.finding.value,
            threshold=rule.threshold,
            since=seen.now,
            fired_at=seen.now if decided.state is AlertState.FIRING else None,
            resolved_at=None,
        )

    async def _tell(
        self, connection: Connection, seen: Seen, what: str, alert: UUID, since: datetime
    ) -> None:
        rule = seen.rule
        body: dict[str, Any] = {
            "alert_id": to_text("alr", alert),
            "rule": rule.name,
            "condition": rule.condition.value,
            "subject": seen.subject,
            "name": seen.name,
            "severity": rule.severity.name.lower(),
            "value": None if seen.finding is None else round(seen.finding.value, 3),
            "threshold": rule.threshold,
            "since": shown_instant(since),
            "targets": list(rule.targets),
            "state": "firing" if what == FIRE else "resolved",
        }
        if seen.subject.startswith("job_"):
            body["job_id"] = seen.subject
        elif seen.subject.startswith("queue:"):
            body["queue"] = seen.subject.removeprefix("queue:")
        if what != FIRE:
            body["resolved_at"] = shown_instant(seen.now)
        await self._write(connection, seen, FIRING if what == FIRE else RESOLVED, body)
        also = ALSO.get((rule.condition, what))
        if also is not None:
            kept = {name: value for name, value in body.items() if name in ALSO_TELLS}
            await self._write(connection, seen, also, kept)

    async def _write(
        self, connection: Connection, seen: Seen, kind: str, body: Mapping[str, Any]
    ) -> None:
        rule = seen.rule
        shard = shard_of_key(self._shards, str(rule.tenant), rule.name, seen.subject)
        await tell(
            connection,
            rule.tenant,
            kind,
            event=self._fresh_id(shard, seen.now),
            subject=seen.subject,
            body={name: value for name, value in body.items() if value is not None},
            now=seen.now,
        )

    def _fresh_id(self, shard: ShardId, now: datetime) -> UUID:
        return next(random_ids(to_ms(now), shard, self._entropy(TAIL_BYTES)))


async def _names(connection: Connection, subjects: Sequence[str]) -> dict[str, str]:
    jobs = [from_text("job", one) for one in subjects if one.startswith("job_")]
    return await names_of(connection, jobs) if jobs else {}
