"""The courier: empties mailboxes in which something is due.

A mailbox is held by lease and emptied in waves: what is due is read, sent, and marked in one
transaction that repeats owner and fence. Each mailbox has a task of its own, so a slow endpoint is
slow for itself. An endpoint that failed a few times in a row is asked with one delivery at a time,
with growing pauses, and the others wait without losing an attempt.

One question finds how soon something is due. Where nothing is, the next look is called by the
router of this process or by whoever puts something into a mailbox (a hint), by the clock, and
otherwise after `REST`: so late is a delivery found at most whose hint was lost.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from betimes.config.notify import NotifySettings
from betimes.dispatcher.opening import Opener
from betimes.dispatcher.send import Sender
from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, Unavailable
from betimes.domain.ids import TAIL_BYTES, random_ids, to_ms, to_text
from betimes.domain.notice import DeliveryState, Pace, Sent, Step, next_step
from betimes.ops.desk import Desk
from betimes.ops.vault import Vault
from betimes.rhythm import Stopping, attend, beat
from betimes.store import deliveries as rows
from betimes.store.audit import EventRow
from betimes.store.database import Database
from betimes.store.deliveries import Done, Mailbox, Waiting
from betimes.store.endpoints import Endpoint, close_mailbox, disable_endpoint, read_endpoint
from betimes.store.pool import Connection, Lane
from betimes.store.routing import mailboxes_due_in
from betimes.store.run_contents import Content
from betimes.store.server import read_clock
from betimes.telemetry import Items, Outage, Telemetry
from betimes.wire.base import shown_instant

REST = timedelta(seconds=1)
WAVES_MAX = 20
CONCURRENCY = 4
PAUSE_MAX = timedelta(seconds=1)
FORGOTTEN = Sent(ok=False, detail="the event is kept no longer")


@dataclass(frozen=True, slots=True)
class Wave:
    """What is sent together."""

    endpoint: Endpoint
    waiting: Sequence[Waiting]
    events: dict[UUID, EventRow]
    credential: bytes | None = field(default=None, repr=False)
    contents: Mapping[UUID, Content] = field(default_factory=dict)
    """What the runs of events were given and gave, for endpoints that want all of it."""


class Courier:
    """Sends what is due, a bounded number of mailboxes at once."""

    def __init__(
        self,
        *,
        database: Database,
        sender: Sender,
        clock: Clock,
        telemetry: Telemetry,
        settings: NotifySettings,
        roll: Callable[[], float],
        entropy: Callable[[int], bytes],
        vault: Vault | None = None,
        desk: Desk | None = None,
        nudge: asyncio.Event | None = None,
        rest: timedelta | None = REST,
    ) -> None:
        self._rest = rest
        self._due_at: float | None = None
        self._database = database
        self._sender = sender
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._roll = roll
        self._entropy = entropy
        self._opener = Opener(vault=vault, entropy=entropy, desk=desk)
        self._nudge = nudge
        self._owner = self._fresh_id(0)
        self._group: asyncio.TaskGroup | None = None
        self._busy: dict[UUID, asyncio.Task[list[None]]] = {}
        self._outage = Outage(duty="dispatcher.courier", telemetry=telemetry)
        self._mailboxes = Items(duty="dispatcher.courier", telemetry=telemetry)
        self._sent = telemetry.counter("betimes_webhook_deliveries_total")

    async def run(self, stopping: Stopping) -> None:
        """Send until asked to stop; what is under way is finished."""
        beats = beat(
            self._clock,
            every=self._settings.deliver_every,
            stopping=stopping,
            nudge=self._nudge,
            rest=self._rest,
            due_in=self._due_in,
        )
        async with self.working():
            await attend(self.tick, beats=beats, troubles=self._outage)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Mailboxes may be emptied inside; the end waits for those under way."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            yield

    async def tick(self) -> int:
        """Claim what is due as far as there is room; how many mailboxes were begun."""
        with self._telemetry.span("courier.tick") as span:
            span.expect_errors()
            room = self._settings.mailboxes - len(self._busy)
            claimed = await self._claim(room) if room > 0 and await self._is_due() else []
            for mailbox in claimed:
                self._begin(mailbox)
            span.add(mailboxes=len(claimed))
        return len(claimed)

    async def _is_due(self) -> bool:
        """Whether something is due in any mailbox, held by somebody or not."""
        due_in = await mailboxes_due_in(self._database, now=self._clock.stated())
        self._due_at = None if due_in is None else self._clock.monotonic() + due_in
        return due_in is not None and due_in <= 0

    def _due_in(self) -> float | None:
        return None if self._due_at is None else self._due_at - self._clock.monotonic()

    async def idle(self) -> None:
        """Return when nothing is under way."""
        while self._busy:
            await asyncio.wait(list(self._busy.values()))

    def _begin(self, mailbox: Mailbox) -> None:
        if self._group is None:
            raise RuntimeError("a courier empties mailboxes only inside `working`")
        # One that fails is left to its lease, which runs out, and to a later time.
        empty = self._mailboxes.each([mailbox.endpoint], lambda _: self._empty(mailbox))
        task = self._group.create_task(empty, name="dispatcher.mailbox")
        self._busy[mailbox.endpoint] = task
        task.add_done_callback(lambda _: self._busy.pop(mailbox.endpoint, None))

    async def _claim(self, room: int) -> list[Mailbox]:
        async def work(connection: Connection) -> list[Mailbox]:
            now = self._clock.stated()
            return await rows.claim_mailboxes(connection, self._owner, most=room, now=now)

        # Not repeated: a claim whose reply was lost runs out like that of a process that died.
        return await self._database.transact(work, lane=Lane.ENGINE, repeatable=False)

    async def _empty(self, mailbox: Mailbox) -> None:
        try:
            for _ in range(WAVES_MAX):
                await self._keep_pace(mailbox)
                wave = await self._next_wave(mailbox)
                if wave is None or not wave.waiting:
                    break
                done = await self._send(wave)
                mailbox = await self._mark(mailbox, wave, done)
            await self._release(mailbox)
        except FencedOut:
            self._telemetry.event("mailbox.lost", level="warning", endpoint=mailbox.endpoint)
        except Unavailable as error:
            # The lease runs out, and whoever comes then sends what was not marked once more.
            self._outage.failed(error)

    async def _keep_pace(self, mailbox: Mailbox) -> None:
        """A short pause is waited for; during a long one somebody else may have the mailbox."""
        held = mailbox.health.held_until
        if held is None or mailbox.health.failures:
            return
        pause = held - (self._clock.stated() or await read_clock(self._database))
        if timedelta(0) < pause <= PAUSE_MAX:
            await self._clock.sleep(pause.total_seconds())

    async def _next_wave(self, mailbox: Mailbox) -> Wave | None:
        now = self._clock.stated()

        async def work(connection: Connection) -> Wave | None:
            endpoint = await read_endpoint(connection, mailbox.tenant, mailbox.endpoint)
            if endpoint is None:
                return None
            at = await rows.hold(connection, mailbox, now=now)
            pace = Pace.of(endpoint.settings.get("rate"))
            concurrency = int(endpoint.settings.get("concurrency", CONCURRENCY))
            waiting = await rows.due_deliveries(
                connection,
                mailbox,
                only_tests=_is_closed(endpoint, mailbox, at),
                most=1 if mailbox.health.is_doubtful else pace.wave(concurrency),
                now=now,
            )
            told = await rows.read_told(connection, mailbox.tenant, [one.event for one in waiting])
            opener = self._opener
            credential = await opener.credential(connection, endpoint) if waiting else None
            contents = await opener.contents(connection, endpoint, told)
            told = await opener.told(connection, endpoint, told)
            return Wave(endpoint, waiting, told, credential, contents)

        return await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _send(self, wave: Wave) -> list[tuple[Waiting, Sent]]:
        async def one(waiting: Waiting) -> Sent:
            event = wave.events.get(waiting.event)
            if event is None:
                return FORGOTTEN
            content = wave.contents.get(event.id)
            return await self._sender.send(wave.endpoint, event, wave.credential, content)

        sent = await asyncio.gather(*(one(waiting) for waiting in wave.waiting))
        return list(zip(wave.waiting, sent, strict=True))

    async def _mark(
        self, mailbox: Mailbox, wave: Wave, sent: Sequence[tuple[Waiting, Sent]]
    ) -> Mailbox:
        """Write down what came of a wave; the mailbox with how its endpoint fares now."""

        async def work(connection: Connection) -> Mailbox:
            now = await rows.hold(connection, mailbox, now=self._clock.stated())
            done = [self._done(waiting, result, now) for waiting, result in sent]
            marked = _paced(self._judged(mailbox, sent, now), wave, now)
            kept = await self._opener.kept(connection, mailbox.tenant, done)
            await rows.mark(connection, marked, kept, now=now)
            await rows.note_health(connection, marked, done, now=now)
            if reason := self._verdict(marked, sent, now):
                await self._disable(connection, wave.endpoint, marked, reason, now)
            return marked

        marked = await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)
        for _, result in sent:
            self._sent.add(outcome="ok" if result.ok else "failed")
        return marked

    def _done(self, waiting: Waiting, sent: Sent, now: datetime) -> Done:
        attempt = waiting.attempt + 1
        if sent is FORGOTTEN:
            step = Step(state=DeliveryState.FAILED, attempt=attempt, due_at=None)
        else:
            step = next_step(
                sent, attempt=attempt, now=now, roll=self._roll(), is_test=waiting.is_test
            )
        return Done(delivery=waiting.id, sent=sent, step=step)

    def _judged(
        self, mailbox: Mailbox, sent: Sequence[tuple[Waiting, Sent]], now: datetime
    ) -> Mailbox:
        health = mailbox.health
        for waiting, result in sent:
            # A test says nothing about the endpoint but to whoever asked for it.
            if not waiting.is_test and result is not FORGOTTEN:
                health = health.after(result, now=now, roll=self._roll())
        return replace(mailbox, health=health)

    def _verdict(
        self, mailbox: Mailbox, sent: Sequence[tuple[Waiting, Sent]], now: datetime
    ) -> str | None:
        """Why nothing more shall be sent to an endpoint, if that is so."""
        if any(result.gone for waiting, result in sent if not waiting.is_test):
            return "it answered 410 Gone"
        if mailbox.health.is_persistent(now=now, after=self._settings.disable_after):
            since = mailbox.health.failing_since or now
            return f"it has failed since {shown_instant(since)}"
        return None

    async def _disable(
        self,
        connection: Connection,
        endpoint: Endpoint,
        mailbox: Mailbox,
        reason: str,
        now: datetime,
    ) -> None:
        if not await disable_endpoint(connection, endpoint, reason=reason, now=now):
            return
        await close_mailbox(connection, endpoint)
        subject = to_text("ep", endpoint.id)
        body = {
            "endpoint_id": subject,
            "name": endpoint.name,
            "reason": reason,
            "failures": mailbox.health.failures,
        }
        await rows.tell_disabled(
            connection,
            endpoint.tenant,
            event=self._fresh_id(endpoint.shard),
            subject=subject,
            body=body,
            now=now,
        )
        self._telemetry.event("endpoint.disabled", level="warning", endpoint=subject, reason=reason)

    async def _release(self, mailbox: Mailbox) -> None:
        async def work(connection: Connection) -> None:
            endpoint = await read_endpoint(connection, mailbox.tenant, mailbox.endpoint)
            if endpoint is None:
                return  # deleted, and its mailbox with it
            await rows.hold(connection, mailbox, now=self._clock.stated())
            await rows.release(
                connection,
                mailbox,
                only_tests=endpoint.disabled_at is not None,
                not_before=mailbox.health.held_until,
            )

        await self._database.transact(work, lane=Lane.ENGINE, repeatable=True)

    def _fresh_id(self, shard: int) -> UUID:
        now = to_ms(self._clock.now())
        return next(random_ids(now, shard, self._entropy(TAIL_BYTES)))


def _paced(mailbox: Mailbox, wave: Wave, now: datetime) -> Mailbox:
    """The same, left alone until what was sent is paid for by the endpoint's rate."""
    pause = Pace.of(wave.endpoint.settings.get("rate")).pause(len(wave.waiting))
    if not pause:
        return mailbox
    until = max(now + pause, mailbox.health.held_until or now)
    return replace(mailbox, health=replace(mailbox.health, held_until=until))


def _is_closed(endpoint: Endpoint, mailbox: Mailbox, now: datetime) -> bool:
    """Whether nothing but tests may be sent now."""
    held = mailbox.health.held_until
    return endpoint.disabled_at is not None or (held is not None and held > now)
