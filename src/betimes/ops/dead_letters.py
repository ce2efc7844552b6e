"""Dead letters: looking at them, redriving one or many at a rate, discarding, noting."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.errors import IllegalTransition, NotFound, TooLarge
from betimes.domain.ids import RunId, ShardId, TenantId, shard_of, to_text
from betimes.domain.parcel import Parcel
from betimes.domain.run import spread
from betimes.ops.checks import check_payload, check_queue, check_rate, check_reason
from betimes.ops.contents import sealed_one
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.revival import revive_runs
from betimes.ops.sayings import open_attempts, open_groups, open_letters, says
from betimes.store import dead_letters as rows
from betimes.store.control import hold
from betimes.store.dead_letters import (
    BEGINNING,
    Attempt,
    DeadLetter,
    LetterFilter,
    LetterGroup,
    LetterState,
    annotate,
    group_letters,
    list_letters,
    read_attempts,
    read_letter,
    resolve,
)
from betimes.store.pool import Connection

PAGE_MAX = 1_000
SCANS_MAX = 10
REDRIVE_MAX = 10_000
REDRIVEN = "REDRIVEN"
NOT_LATER = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterPage:
    """A page of letters; `next` is where the following one begins, None at the end."""

    letters: Sequence[DeadLetter]
    next: tuple[datetime, UUID] | None


async def list_dead_letters(
    desk: Desk,
    tenant: TenantId,
    chosen: LetterFilter | None = None,
    *,
    after: tuple[datetime, UUID] = BEGINNING,
    limit: int = 50,
) -> LetterPage:
    """Letters in the order of their deaths.

    A text is looked for here where errors are sealed, so a page may be short and not the last.
    """
    most = min(max(limit, 1), PAGE_MAX)
    wanted = chosen or LetterFilter()

    async def work(connection: Connection) -> LetterPage:
        place, found = after, list[DeadLetter]()
        for _ in range(SCANS_MAX):
            letters = await list_letters(
                connection, tenant, wanted, after=place, most=most - len(found)
            )
            full = len(letters) == most - len(found)
            if letters:
                place = letters[-1].dead_at, letters[-1].run
            opened = await open_letters(desk, connection, tenant, letters)
            found += [
                one
                for kept, one in zip(letters, opened, strict=True)
                if says(kept.error, one.error, wanted.text)
            ]
            if not full or len(found) == most:
                return LetterPage(letters=found, next=place if full else None)
        return LetterPage(letters=found, next=place)

    return await desk.transact(work, tenant=tenant)


async def estimate_letters(desk: Desk, tenant: TenantId, chosen: LetterFilter) -> int:
    """About how many letters fit, without counting them."""

    async def work(connection: Connection) -> int:
        return await rows.estimate_letters(connection, tenant, chosen)

    return await desk.transact(work, tenant=tenant)


async def list_dead_groups(desk: Desk, tenant: TenantId) -> list[LetterGroup]:
    """Open letters by what they died of, the largest groups first."""

    async def work(connection: Connection) -> list[LetterGroup]:
        groups = await group_letters(connection, tenant)
        return await open_groups(desk, connection, tenant, groups)

    return await desk.transact(work, tenant=tenant)


async def get_dead_letter(
    desk: Desk, tenant: TenantId, run: RunId
) -> tuple[DeadLetter, list[Attempt]]:
    """One letter with its attempts."""

    async def work(connection: Connection) -> tuple[DeadLetter, list[Attempt]]:
        letter = await _required(desk, connection, tenant, run)
        attempts = await read_attempts(connection, run)
        return letter, await open_attempts(desk, connection, tenant, attempts)

    return await desk.transact(work, tenant=tenant)


async def redrive(
    desk: Desk,
    tenant: TenantId,
    runs: Sequence[RunId],
    *,
    rate_per_second: float | None = None,
    reset_attempts: bool = True,
    queue: str | None = None,
    payload: bytes | None = None,
    delay: timedelta = NOT_LATER,
) -> list[RunId]:
    """Give dead runs another life, in the order given, no faster than the rate.

    All in one transaction; letters that are not open any more are left out of the answer. Repeating
    it therefore redrives nothing twice.
    """
    check_rate(rate_per_second)
    check_payload(payload)
    if queue is not None:
        check_queue(queue)
    if len(runs) > REDRIVE_MAX:
        raise TooLarge(
            f"expected at most {REDRIVE_MAX} dead letters at once, got {len(runs)}",
            code="batch_too_large",
        )
    drive = Redrive(
        tenant=tenant,
        runs=runs,
        tails=desk.entropy(len(runs) * TAIL_BYTES),
        rate_per_second=rate_per_second,
        reset_attempts=reset_attempts,
        queue=queue,
        payload=payload,
    )

    async def work(connection: Connection) -> list[Parcel]:
        drive.payload = await sealed_one(desk, connection, tenant, payload)
        return await drive.apply(connection, await desk.now(connection) + delay)

    parcels = await desk.transact(work, tenant=tenant)
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
    revived = {run for parcel in parcels for run in parcel.runs}
    return [run for run in runs if run in revived]


@dataclass(slots=True, kw_only=True)
class Redrive:
    """Letters on their way back into the queue; eight bytes of `tails` for each."""

    tenant: TenantId
    runs: Sequence[RunId]
    tails: bytes
    rate_per_second: float | None
    reset_attempts: bool
    queue: str | None
    payload: bytes | None
    before: list[Parcel] = field(default_factory=list)

    async def apply(self, connection: Connection, now: datetime) -> list[Parcel]:
        """Close the letters that are open and revive their runs, shard by shard."""
        times = list(spread(len(self.runs), now, self.rate_per_second))
        by_shard: dict[ShardId, list[int]] = {}
        for place, run in enumerate(self.runs):
            by_shard.setdefault(shard_of(run), []).append(place)
        parcels: list[Parcel] = []
        for shard, places in sorted(by_shard.items()):
            mine = [self.runs[place] for place in places]
            # Whoever ends a run has its parcel, and then writes the letter.
            await hold(connection, shard, self.tenant, mine)
            opened = await resolve(connection, shard, mine, state=LetterState.REDRIVEN, now=now)
            chosen = [place for place in places if self.runs[place] in opened]
            parcels += await revive_runs(
                connection,
                self.tenant,
                [self.runs[place] for place in chosen],
                visible=[times[place] for place in chosen],
                tails=b"".join(self._tail(place) for place in chosen),
                reason=REDRIVEN,
                reset_attempts=self.reset_attempts,
                queue=self.queue,
                payload=self.payload,
            )
        # Nothing open any more: our own commit, whose reply was lost.
        self.before = parcels or self.before
        return self.before

    def _tail(self, place: int) -> bytes:
        return self.tails[place * TAIL_BYTES : (place + 1) * TAIL_BYTES]


async def redrive_one(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    reset_attempts: bool = True,
    queue: str | None = None,
    payload: bytes | None = None,
    delay: timedelta = NOT_LATER,
) -> RunId:
    """Redrive one letter, or say why not."""
    done = await redrive(
        desk,
        tenant,
        [run],
        reset_attempts=reset_attempts,
        queue=queue,
        payload=payload,
        delay=delay,
    )
    if not done:
        letter, _ = await get_dead_letter(desk, tenant, run)
        if letter.state is LetterState.OPEN:
            raise IllegalTransition(
                "expected a dead letter whose run is kept, got one whose run was deleted; "
                "discard it, and enqueue a new run"
            )
        raise IllegalTransition(
            f"expected an open dead letter, got one that is {letter.state.name.lower()}"
        )
    return run


async def redrive_matching(
    desk: Desk,
    tenant: TenantId,
    chosen: LetterFilter,
    *,
    limit: int = REDRIVE_MAX,
    rate_per_second: float | None = None,
    reset_attempts: bool = True,
) -> list[RunId]:
    """Redrive what a filter or a fingerprint means, oldest death first, at a rate."""
    page = await list_dead_letters(desk, tenant, chosen, limit=limit)
    runs = [letter.run for letter in page.letters]
    while page.next is not None and len(runs) < limit:
        page = await list_dead_letters(
            desk, tenant, chosen, after=page.next, limit=limit - len(runs)
        )
        runs += [letter.run for letter in page.letters]
    return await redrive(
        desk, tenant, runs, rate_per_second=rate_per_second, reset_attempts=reset_attempts
    )


async def discard(
    desk: Desk, tenant: TenantId, runs: Sequence[RunId], *, reason: str | None = None
) -> list[RunId]:
    """Close letters for good; the runs stay dead. Returns those that were open."""
    if reason is not None:
        check_reason(reason)

    closed: set[RunId] = set()

    async def work(connection: Connection) -> None:
        now = await desk.now(connection)
        for shard in sorted({shard_of(run) for run in runs}):
            mine = [run for run in runs if shard_of(run) == shard]
            closed.update(
                await resolve(
                    connection, shard, mine, state=LetterState.DISCARDED, now=now, note=reason
                )
            )

    # Kept over repetitions: what an own commit with a lost reply has closed is not open any more.
    await desk.transact(work, tenant=tenant)
    return [run for run in runs if run in closed]


async def discard_one(
    desk: Desk, tenant: TenantId, run: RunId, *, reason: str | None = None
) -> RunId:
    """Close one letter, or say why not."""
    if not await discard(desk, tenant, [run], reason=reason):
        letter, _ = await get_dead_letter(desk, tenant, run)
        raise IllegalTransition(
            f"expected an open dead letter, got one that is {letter.state.name.lower()}"
        )
    return run


async def annotate_dead_letter(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    note: str | None = None,
    assignee: str | None = None,
) -> DeadLetter:
    """Write a note, or give the letter to somebody."""
    for text in (note, assignee):
        if text is not None:
            check_reason(text)

    async def work(connection: Connection) -> DeadLetter:
        await annotate(connection, run, note=note, assignee=assignee)
        return await _required(desk, connection, tenant, run)

    return await desk.transact(work, tenant=tenant)


async def _required(desk: Desk, connection: Connection, tenant: TenantId, run: RunId) -> DeadLetter:
    letter = await read_letter(connection, run)
    if letter is None or letter.tenant != tenant:
        raise NotFound(f"there is no dead letter of the run {to_text('run', run)}")
    (opened,) = await open_letters(desk, connection, tenant, [letter])
    return opened
