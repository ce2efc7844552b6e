"""Creations with a business key: made, recognised as the one before, or put in its place.

The row of a key is taken before anything is made and names its holder when everything is made, in
one transaction. Whoever comes with the same key at the same moment waits at that row and then sees
who has it. A key lives in the shard of its own digest, and so does the run, or the unnamed job,
that holds it.

A transaction is one: when what an earlier try has made is there, all of that try is, and its
answer stands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import Invalid, Refused
from betimes.domain.ids import JobId, RunId, ShardId, TenantId, shard_of, shard_of_key
from betimes.domain.job import Job
from betimes.domain.parcel import NEVER_LEASED, Parcel
from betimes.domain.run import NewRun
from betimes.domain.states import RunState
from betimes.fairness.dedupe import DedupeAnswer, Holder, answer
from betimes.ops.checks import check_text
from betimes.ops.create import Creation, NewJob, announce, check_new_job, create_jobs, pointing
from betimes.ops.desk import Desk
from betimes.ops.enqueue import Order, enqueue_runs
from betimes.store.adhoc import existing
from betimes.store.control import end_runs, freeze, hold
from betimes.store.dedupe import (
    Key,
    Standing,
    Taken,
    hand_keys,
    jobs_standing,
    runs_standing,
    take_keys,
)
from betimes.store.jobs import read_job
from betimes.store.pool import Connection
from betimes.wire.base import shown_duration

T = TypeVar("T")
DEDUPED = "DEDUPED"
ITEMS = "/items/"
KEY_LENGTH_MAX = 255
WINDOW_MAX = timedelta(days=366)
OF_RUN, OF_JOB = "run", "job"


class MadeRun(NamedTuple):
    """A run that was made, or the one that stands for it; `replaced` is the one it pushed out."""

    id: RunId
    deduplicated: bool = False
    replaced: RunId | None = None


class MadeJob(NamedTuple):
    """A job that was made, or the one that stands for it."""

    job: Job
    deduplicated: bool = False


async def enqueue_made(
    desk: Desk, tenant: TenantId, new: Sequence[NewRun], *, shard: ShardId | None = None
) -> list[MadeRun]:
    """All of them or none, in one transaction; what came of each, in the order given."""
    if not any(one.dedupe is not None for one in new):
        return [MadeRun(run) for run in await enqueue_runs(desk, tenant, new, shard=shard)]
    wishes = RunWishes(desk, tenant, new, shard=desk.next_shard() if shard is None else shard)
    parcels = await desk.transact(wishes.place, tenant=tenant)
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
    return wishes.made


async def create_made(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob], *, shard: ShardId | None = None
) -> list[MadeJob]:
    """All of them or none, in one transaction; what came of each, in the order given."""
    if not any(one.dedupe is not None for one in new):
        return [MadeJob(job) for job in await create_jobs(desk, tenant, new, shard=shard)]
    wishes = JobWishes(desk, tenant, new, shard=desk.next_shard() if shard is None else shard)
    parcels = await desk.transact(wishes.place, tenant=tenant)
    announce(desk, [made.job for made in wishes.made if not made.deduplicated], parcels)
    return wishes.made


def check_dedupe(dedupe: Dedupe, *, of_job: bool) -> None:
    """A key that can be stored, and a window where the form needs one."""
    pointer = "/dedupe"
    check_text(dedupe.key, what="a dedupe key", most=KEY_LENGTH_MAX, pointer=f"{pointer}/key")
    if dedupe.window is not None and not timedelta(0) < dedupe.window <= WINDOW_MAX:
        raise Invalid(
            f"expected a window above 0 and of at most a year, got {shown_duration(dedupe.window)}",
            pointer=f"{pointer}/window",
        )
    if dedupe.window is None and dedupe.form is not DedupeForm.UNIQUE:
        raise Invalid(f"expected a window for {dedupe.form}, got none", pointer=f"{pointer}/window")
    if of_job and dedupe.form is DedupeForm.DEBOUNCE:
        raise Invalid(
            "expected unique or throttle for a job, got debounce: a job has a schedule, replace it "
            "by its name instead",
            pointer=f"{pointer}/form",
        )


def key_of(shards: int, tenant: TenantId, dedupe: Dedupe, noun: str) -> Key:
    """The stored key; runs and jobs have their own."""
    text = f"{noun}:{dedupe.key}"
    return Key(shard_of_key(shards, str(tenant), text), text)


@dataclass(slots=True)
class Held(Generic[T]):
    """Who has a key as we go through the wishes of a batch, each after the one before."""

    value: T
    created_at: datetime
    window: timedelta
    standing: Standing

    def answer(self, form: DedupeForm, now: datetime) -> DedupeAnswer:
        """What the next wish with this key means."""
        holder = Holder(self.created_at, self.standing.active, self.standing.started)
        return answer(form, holder, self.window, now)


FRESH = Standing(active=True, started=False)


class RunWishes:
    """Runs that one tenant asked for, some of them with keys; their ids may be promised already."""

    def __init__(
        self,
        desk: Desk,
        tenant: TenantId,
        new: Sequence[NewRun],
        *,
        shard: ShardId,
        ids: Sequence[RunId] = (),
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._new = list[NewRun]()
        for place, one in enumerate(new):
            with pointing(place, alone=len(new) == 1):
                self._new.append(_with_key(one))
        self._keys = [
            None if one.dedupe is None else key_of(desk.shards, tenant, one.dedupe, OF_RUN)
            for one in new
        ]
        self._shard = shard
        self._ids = ids
        self._tried: RunId | None = None
        self.made: list[MadeRun] = []

    async def place(self, connection: Connection) -> list[Parcel]:
        """Make what is to be made; the parcels that wait now come back for the hints."""
        now = await self._desk.now(connection)
        if self._tried is not None and await existing(
            connection, shard_of(self._tried), [self._tried]
        ):
            return []  # our own commit, whose reply was lost
        keys = [key for key in self._keys if key is not None]
        taken = await take_keys(connection, self._tenant, keys, now=now)
        held = await self._holders(connection, taken)
        return await self._make(connection, held, now)

    async def _holders(
        self, connection: Connection, taken: dict[Key, Taken]
    ) -> dict[Key, Held[int | RunId]]:
        holders = [RunId(one.holder) for one in taken.values()]
        standing = await runs_standing(connection, holders)
        if any(one.dedupe is not None and _debounces(one.dedupe) for one in self._new):
            standing |= await self._locked(connection, standing)
        return {
            key: Held(
                RunId(one.holder), one.created_at, one.expires_at - one.created_at, standing[found]
            )
            for key, one in taken.items()
            if (found := one.holder) in standing
        }

    async def _locked(
        self, connection: Connection, standing: dict[UUID, Standing]
    ) -> dict[UUID, Standing]:
        """Keep workers from what may be replaced: either one has it by now, or none gets it."""
        sure: dict[UUID, Standing] = {}
        waiting = [RunId(run) for run, one in standing.items() if one.active and not one.started]
        for shard in sorted({shard_of(run) for run in waiting}):
            runs = [run for run in waiting if shard_of(run) == shard]
            await freeze(connection, shard, now=self._desk.clock.stated())
            parcels = await hold(connection, shard, self._tenant, runs)
            for run, parcel in parcels.items():
                # A fence above zero: a worker had it once, even if it gave it back.
                sure[run] = Standing(active=True, started=parcel.fence > NEVER_LEASED)
        return sure

    async def _make(
        self, connection: Connection, held: dict[Key, Held[int | RunId]], now: datetime
    ) -> list[Parcel]:
        """Go through the wishes in order; a number stands for one of this batch."""
        creating: list[int] = []
        reused: dict[int, int | RunId] = {}
        replaced: dict[int, int | RunId] = {}
        for place, (one, key) in enumerate(zip(self._new, self._keys, strict=True)):
            if one.dedupe is not None and key is not None:
                before = held.get(key)
                verdict = DedupeAnswer.CREATE
                if before is not None:
                    verdict = before.answer(one.dedupe.form, now)
                    if verdict is DedupeAnswer.REUSE:
                        reused[place] = before.value
                        continue
                if before is not None and verdict is DedupeAnswer.REPLACE:
                    replaced[place] = before.value
                held[key] = Held(place, now, one.dedupe.window or timedelta(0), FRESH)
            creating.append(place)
        runs, parcels = await self._insert(connection, creating)

        def run_of(value: int | RunId) -> RunId:
            return runs[value] if isinstance(value, int) else value

        await self._end(connection, [run_of(one) for one in replaced.values()], now)
        handed = {
            key: (runs[one.value], now + one.window)
            for key, one in held.items()
            if isinstance(one.value, int)
        }
        await hand_keys(connection, self._tenant, handed, now=now)
        self._tried = next(iter(runs.values()), None)
        self.made = [
            MadeRun(run_of(reused[place]), deduplicated=True)
            if place in reused
            else MadeRun(
                runs[place],
                replaced=run_of(replaced[place]) if place in replaced else None,
            )
            for place in range(len(self._new))
        ]
        return parcels

    async def _insert(
        self, connection: Connection, places: Sequence[int]
    ) -> tuple[dict[int, RunId], list[Parcel]]:
        """One order for each shard, as every batch of runs goes into one."""
        by_shard: dict[ShardId, list[int]] = {}
        for place in places:
            key = None if self._ids else self._keys[place]
            by_shard.setdefault(self._shard if key is None else key.shard, []).append(place)
        runs: dict[int, RunId] = {}
        parcels: list[Parcel] = []
        for shard, mine in by_shard.items():
            bare = [replace(self._new[place], dedupe=None) for place in mine]
            ids = [self._ids[place] for place in mine] if self._ids else ()
            order = Order(self._desk, self._tenant, bare, shard=shard, ids=ids)
            parcels += await order.place(connection)
            runs |= dict(zip(mine, order.ids, strict=True))
        return runs, parcels

    async def _end(self, connection: Connection, runs: Iterable[RunId], now: datetime) -> None:
        """What was replaced will not run; every lease reads that in its row."""
        for run in runs:
            await end_runs(
                connection, shard_of(run), [run], state=RunState.SKIPPED, reason=DEDUPED, now=now
            )


class JobWishes:
    """Jobs that one tenant asked for, some of them with keys."""

    def __init__(
        self, desk: Desk, tenant: TenantId, new: Sequence[NewJob], *, shard: ShardId
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._new = new
        for place, one in enumerate(new):
            with pointing(place, alone=len(new) == 1):
                check_new_job(one)
                if one.dedupe is not None:
                    check_dedupe(one.dedupe, of_job=True)
        self._keys = [
            None if one.dedupe is None else key_of(desk.shards, tenant, one.dedupe, OF_JOB)
            for one in new
        ]
        self._shard = shard
        self._tried: JobId | None = None
        self.made: list[MadeJob] = []

    async def place(self, connection: Connection) -> list[Parcel]:
        """Make what is to be made; the parcels that wait now come back for the hints."""
        now = await self._desk.now(connection)
        if self._tried is not None and await read_job(connection, self._tried) is not None:
            return []  # our own commit, whose reply was lost
        keys = [key for key in self._keys if key is not None]
        taken = await take_keys(connection, self._tenant, keys, now=now)
        standing = await jobs_standing(connection, [one.holder for one in taken.values()])
        held: dict[Key, Held[int | JobId]] = {
            key: Held(
                JobId(one.holder), one.created_at, one.expires_at - one.created_at, standing[found]
            )
            for key, one in taken.items()
            if (found := one.holder) in standing
        }
        creating: list[int] = []
        reused: dict[int, int | JobId] = {}
        for place, (one, key) in enumerate(zip(self._new, self._keys, strict=True)):
            if one.dedupe is not None and key is not None:
                before = held.get(key)
                if before is not None and before.answer(one.dedupe.form, now) is DedupeAnswer.REUSE:
                    reused[place] = before.value
                    continue
                held[key] = Held(place, now, one.dedupe.window or timedelta(0), FRESH)
            creating.append(place)
        jobs, parcels = await self._insert(connection, creating)
        handed = {
            key: (UUID(int=jobs[one.value].id.int), now + one.window)
            for key, one in held.items()
            if isinstance(one.value, int)
        }
        await hand_keys(connection, self._tenant, handed, now=now)
        self._tried = next((job.id for job in jobs.values()), None)
        self.made = [
            MadeJob(await self._known(connection, reused[place], jobs), deduplicated=True)
            if place in reused
            else MadeJob(jobs[place])
            for place in range(len(self._new))
        ]
        return parcels

    async def _known(self, connection: Connection, value: int | JobId, jobs: dict[int, Job]) -> Job:
        if isinstance(value, int):
            return jobs[value]
        found = await read_job(connection, value)
        if found is None:
            raise Refused("the job that has this dedupe key was deleted just now; ask again")
        return found

    async def _insert(
        self, connection: Connection, places: Sequence[int]
    ) -> tuple[dict[int, Job], list[Parcel]]:
        by_shard: dict[ShardId, list[int]] = {}
        for place in places:
            key = self._keys[place]
            by_shard.setdefault(self._shard if key is None else key.shard, []).append(place)
        jobs: dict[int, Job] = {}
        parcels: list[Parcel] = []
        for shard, mine in by_shard.items():
            try:
                creation = Creation(
                    self._desk, self._tenant, [self._new[place] for place in mine], shard=shard
                )
                parcels += await creation.place(connection)
            except Refused as refused:
                refused.pointer = moved_pointer(refused.pointer, mine, len(self._new))
                raise
            jobs |= dict(zip(mine, creation.jobs, strict=True))
        return jobs, parcels


def moved_pointer(pointer: str, places: Sequence[int], count: int) -> str:
    """A pointer into a part of a batch, as one into the whole batch."""
    if count == 1:
        return pointer
    if len(places) == 1:
        return f"/items/{places[0]}{pointer}"
    if not pointer.startswith(ITEMS):
        return pointer  # about all of them
    number, slash, rest = pointer.removeprefix(ITEMS).partition("/")
    return f"{ITEMS}{places[int(number)]}{slash}{rest}"


def _with_key(new: NewRun) -> NewRun:
    """The run as it is stored: its key is shown with it, and debounce waits for its window."""
    if new.dedupe is None:
        return new
    check_dedupe(new.dedupe, of_job=False)
    options = {**new.options, "dedupe_key": new.dedupe.key}
    if _debounces(new.dedupe) and new.due_at is None and new.delay is None:
        return replace(new, options=options, delay=new.dedupe.window)
    return replace(new, options=options)


def _debounces(dedupe: Dedupe) -> bool:
    return dedupe.form is DedupeForm.DEBOUNCE
