"""What became of attempts, written under the fences of the parcels that held them.

Every write here may be repeated: a reply can be lost after the commit. A repeat finds rows that
carry our worker and fence already and changes nothing; `ours` tells them from a lost lease.

Long because everything that the end of an attempt writes is written here, in one order of locks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from betimes.domain.event import FAILED, SUCCEEDED
from betimes.domain.ids import Fence, ParcelId, RunId, ShardId, TenantId, WorkerId
from betimes.domain.leased import Streak
from betimes.domain.states import RunState
from betimes.domain.terms import Terms
from betimes.domain.verdict import GOING_ON
from betimes.store.admit import Offered
from betimes.store.database import Database
from betimes.store.ending import EVENTS, Ending, Follow
from betimes.store.failures import AutoPaused, hold_pausing, pause_failing
from betimes.store.pool import Connection
from betimes.store.pool import Lane as Pool
from betimes.store.publish import insert_parcels
from betimes.store.queries import Query, load
from betimes.store.release import Freed, release
from betimes.store.requeue import packed_again
from betimes.store.succeed import Held, Succeeding

SQL = load("finish")
PARCELS = load("parcels")
BREAKERS = load("breakers")
MARGIN = timedelta(seconds=10)
NEWS_TRAVEL = timedelta(seconds=2)
"""So long workers may take to hear from each other that a breaker is open."""

__all__ = [
    "MARGIN",
    "Finishing",
    "Held",
    "Page",
    "Written",
    "hold_jobs_of",
    "write_endings",
    "write_reports",
]


class _Content(NamedTuple):
    """A locked parcel, as far as its end is concerned."""

    fence: Fence
    runs: frozenset[RunId]
    tenant: TenantId
    queue: str
    terms: Terms
    admitted: bool
    """Whether it was let in through its doors."""


class Page(NamedTuple):
    """What there is to write of one shard."""

    shard: ShardId
    fast: Held
    streaks: Sequence[Streak]
    slow: Held
    endings: Sequence[Ending]


@dataclass(frozen=True, slots=True)
class Finishing:
    """The ends of runs, as one worker reports them."""

    database: Database
    worker: WorkerId
    margin: timedelta = MARGIN
    """`coordinator.margin` of the settings: what is planned beyond it has no parcel."""

    async def succeeded(self, shard: ShardId, held: Held, streaks: Sequence[Streak]) -> int:
        """The fast path: lock, then one statement; returns how many runs it finished."""

        async def work(connection: Connection) -> int:
            written = await Succeeding(connection, self.worker, shard).write(held, streaks)
            held.offered = await release(connection, held.freed)
            return written

        return await self.database.transact(work, lane=Pool.COMPLETE, repeatable=True)

    async def together(self, pages: Sequence[Page]) -> tuple[dict[ShardId, int], list[Offered]]:
        """Several shards in one transaction: runs written in each, and whom that makes room for."""

        async def work(connection: Connection) -> tuple[dict[ShardId, int], list[Offered]]:
            written: dict[ShardId, int] = {}
            # In the order in which a heartbeat locks them.
            for page in sorted(pages, key=attrgetter("shard")):
                written[page.shard] = await self._page(connection, page)
            # All doors at once, in their order, after every parcel.
            freed = Freed.together(held.freed for one in pages for held in (one.fast, one.slow))
            return written, await release(connection, freed)

        return await self.database.transact(work, lane=Pool.COMPLETE, repeatable=False)

    async def _page(self, connection: Connection, page: Page) -> int:
        written = 0
        await hold_jobs_of(connection, page.shard, page.slow, page.endings)
        if page.fast.leases:
            succeeding = Succeeding(connection, self.worker, page.shard)
            written = await succeeding.write(page.fast, page.streaks)
        if page.endings:
            slow = _Slow(connection, self.worker, page.shard, self.margin)
            written += len(await slow.write(page.slow, page.endings))
        return written

    async def otherwise(self, shard: ShardId, held: Held, endings: Sequence[Ending]) -> set[RunId]:
        """Every other end, in one transaction; returns the runs that it wrote."""

        async def work(connection: Connection) -> set[RunId]:
            held.pausing = None  # what an earlier try has locked is free again
            written = await _Slow(connection, self.worker, shard, self.margin).write(held, endings)
            held.offered = await release(connection, held.freed)
            return {one.run for one in written}

        return await self.database.transact(work, lane=Pool.COMPLETE, repeatable=True)

    async def ours(
        self, shard: ShardId, claims: Sequence[tuple[RunId, Fence]]
    ) -> dict[RunId, RunState]:
        """Those of the runs that carry our worker and fence, and what they are.

        Our own commit whose reply was lost; or a target has reported what we were waiting for.
        """
        runs = [run for run, _ in claims]
        rows = await self.database.many(
            SQL["find_finished_by"],
            lane=Pool.COMPLETE,
            shard=shard,
            worker=self.worker,
            runs=runs,
            low=min(runs),
            high=max(runs),
        )
        found = {(row["run_id"], row["fence"]): RunState(row["state"]) for row in rows}
        return {run: found[run, fence] for run, fence in claims if (run, fence) in found}


@dataclass(frozen=True, slots=True)
class _Slow:
    """One transaction of the slower endings."""

    connection: Connection
    worker: WorkerId
    shard: ShardId
    margin: timedelta

    async def write(self, held: Held, endings: Sequence[Ending]) -> list[Ending]:
        await hold_jobs_of(self.connection, self.shard, held, endings)
        contents = await self.hold(held)
        return await self.finish(held, judged(endings, contents), contents)

    async def finish(
        self, held: Held, listed: list[Ending], contents: dict[ParcelId, _Content]
    ) -> list[Ending]:
        """Write ends of parcels that are locked, and whose jobs are; those that were written."""
        held.given_up = await self._asked_to_end(listed)
        listed = [one.given_up() if one.run in held.given_up else one for one in listed]
        written = await self._finish(listed) if listed else set()
        done = [one for one in listed if one.run in written]
        await self._note_attempts([one for one in done if one.attempted is not None])
        await self._lay_aside([one for one in done if one.dead is not None])
        held.paused = await self._pause_failing(held, [one for one in done if one.dead])
        await self._queue_again([one for one in done if one.again is not None], contents)
        await self._tell(done)
        await self._follow([one.follow for one in done if one.follow and one.again is None])
        await self._tidy(contents, held.emptied, done)
        held.freed = _freed(held, contents, done)
        return done

    async def hold(self, held: Held) -> dict[ParcelId, _Content]:
        """Lock what is still ours of it."""
        rows = await self._many(
            SQL["hold_parcels"],
            parcels=[parcel for parcel, _ in held.leases],
            fences=[fence for _, fence in held.leases],
            worker=self.worker,
        )
        return {
            row["id"]: _Content(
                row["fence"],
                frozenset(row["run_ids"]),
                row["tenant_id"],
                row["queue"],
                Terms(row["fair"], row["gate"], row["when_full"], row["line"], row["rate_key"]),
                row["slot"],
            )
            for row in rows
        }

    async def _asked_to_end(self, endings: Sequence[Ending]) -> frozenset[RunId]:
        """Who was asked to end and did not end well is cancelled, whoever executed it.

        The parcels are locked, so nobody asks meanwhile.
        """
        runs = [one.run for one in endings if one.state in GOING_ON]
        if not runs:
            return frozenset()
        rows = await self._many(SQL["find_asked_to_end"], runs=runs, low=min(runs), high=max(runs))
        return frozenset(row["id"] for row in rows)

    async def _finish(self, endings: Sequence[Ending]) -> set[RunId]:
        runs = [one.run for one in endings]
        rows = await self._many(
            SQL["finish_otherwise"],
            worker=self.worker,
            runs=runs,
            states=[one.state for one in endings],
            attempts=[one.attempt for one in endings],
            fences=[one.fence for one in endings],
            started=[one.started_at for one in endings],
            finished=[None if one.again else one.ended_at for one in endings],
            results=[one.result for one in endings],
            errors=[one.error for one in endings],
            reasons=[one.reason for one in endings],
            low=min(runs),
            high=max(runs),
        )
        return {row["run_id"] for row in rows}

    async def _note_attempts(self, endings: Sequence[Ending]) -> None:
        tried = [(one, one.attempted) for one in endings if one.attempted is not None]
        if tried:
            await self._many(
                SQL["insert_attempts"],
                worker=self.worker,
                runs=[one.run for one, _ in tried],
                numbers=[one.attempt for one, _ in tried],
                tenants=[one.tenant for one, _ in tried],
                fences=[one.fence for one, _ in tried],
                started=[one.started_at for one, _ in tried],
                finished=[one.ended_at for one, _ in tried],
                retries=[attempted.next_retry_at for _, attempted in tried],
                outcomes=[attempted.outcome for _, attempted in tried],
                errors=[one.error for one, _ in tried],
                https=[attempted.http for _, attempted in tried],
            )

    async def _lay_aside(self, endings: Sequence[Ending]) -> None:
        dead = [(one, one.dead) for one in endings if one.dead is not None]
        if dead:
            await self._many(
                SQL["insert_dead_letters"],
                runs=[one.run for one, _ in dead],
                tenants=[one.tenant for one, _ in dead],
                jobs=[one.job for one, _ in dead],
                dead_at=[one.ended_at for one, _ in dead],
                attempts=[one.attempt for one, _ in dead],
                queues=[one.queue for one, _ in dead],
                handlers=[one.handler for one, _ in dead],
                fingerprints=[letter.fingerprint for _, letter in dead],
                reasons=[letter.reason for _, letter in dead],
                errors=[one.error for one, _ in dead],
            )

    async def _pause_failing(self, held: Held, dead: Sequence[Ending]) -> list[AutoPaused]:
        jobs = {one.job for one in dead if one.job is not None} & (held.pausing or frozenset())
        if not jobs:
            return []
        now = max(one.ended_at for one in dead)
        return await pause_failing(self.connection, self.shard, jobs, now=now, margin=self.margin)

    async def _queue_again(
        self, endings: Sequence[Ending], contents: dict[ParcelId, _Content]
    ) -> None:
        again = [(one, one.again) for one in endings if one.again is not None]
        if again:
            terms = {one.parcel: contents[one.parcel].terms for one, _ in again}
            parcels = packed_again(self.shard, again, terms)
            await insert_parcels(self.connection, self.shard, parcels)
            origins = {one.run: wait.origin for one, wait in again if wait.origin is not None}
            waiting = [parcel for parcel in parcels if parcel.runs[0] in origins]
            if waiting:
                await self._many(
                    BREAKERS["note_origins"],
                    ids=[parcel.id for parcel in waiting],
                    origins=[origins[parcel.runs[0]] for parcel in waiting],
                    soon=max(one.ended_at for one, _ in again) + NEWS_TRAVEL,
                )

    async def _tell(self, endings: Sequence[Ending]) -> None:
        """Events, in the transaction of what they tell; a snooze is nobody's news."""
        told = [
            (EVENTS[one.state], one)
            for one in endings
            if one.state in EVENTS and (one.again is None or one.attempted is not None)
        ]
        told += [(FAILED, one) for one in endings if one.has_failed]
        if told:
            await self._many(SQL["tell_endings"], **_columns(told))

    async def _follow(self, follows: Sequence[Follow]) -> None:
        if follows:
            await self._many(
                SQL["follow_jobs"],
                runs=[one.run for one in follows],
                jobs=[one.job for one in follows],
                revisions=[one.revision for one in follows],
                next_fires=[one.next_fire_at for one in follows],
            )

    async def _tidy(
        self,
        contents: dict[ParcelId, _Content],
        emptied: Collection[ParcelId],
        done: Iterable[Ending],
    ) -> None:
        """Delete what is empty; take runs that moved on out of what goes on being leased."""
        finished = [parcel for parcel in emptied if parcel in contents]
        if finished:
            await self._many(PARCELS["delete_parcels"], ids=finished)
        gone = [one for one in done if one.again is not None and one.parcel not in emptied]
        await self.shrink({one.parcel for one in gone}, [one.run for one in gone])

    async def shrink(self, parcels: Collection[ParcelId], gone: Sequence[RunId]) -> None:
        """Take runs out of parcels that go on being leased; one statement for all of them."""
        if parcels:
            await self._many(SQL["shrink_parcels"], ids=list(parcels), gone=list(gone))

    async def _many(self, query: Query, **given: Any) -> list[Any]:
        arguments = query.arguments({"shard": self.shard, **given})
        return await self.connection.fetch(query.text, *arguments)


async def hold_jobs_of(
    connection: Connection, shard: ShardId, held: Held, endings: Iterable[Ending]
) -> None:
    """Lock what endings may have to write about their jobs, once, before any parcel is locked."""
    if held.pausing is not None:
        return
    dead = {one.job for one in endings if one.dead is not None and one.job is not None}
    following = {one.follow.job for one in endings if one.follow is not None}
    held.pausing = await hold_pausing(connection, shard, dead, following=following)


def judged(endings: Iterable[Ending], contents: Mapping[ParcelId, _Content]) -> list[Ending]:
    """The ends that count: told under the lease that is good, and of each run the first one."""
    good = {(parcel, content.fence) for parcel, content in contents.items()}
    first: dict[RunId, Ending] = {}
    for one in Held.valid(endings, good):
        # A run that an earlier, unanswered try moved into its retry parcel is no longer listed.
        if one.run in contents[one.parcel].runs:
            first.setdefault(one.run, one)
    return list(first.values())


def _columns(told: Sequence[tuple[str, Ending]]) -> dict[str, list[Any]]:
    """Events about endings, as their statement takes them."""
    news = [one for _, one in told]
    return {
        "types": [kind for kind, _ in told],
        "runs": [one.run for one in news],
        "tenants": [one.tenant for one in news],
        "jobs": [one.job for one in news],
        "states": [one.state.name.lower() for one in news],
        "queues": [one.queue for one in news],
        "handlers": [one.handler for one in news],
        "attempts": [one.attempt for one in news],
        "reasons": [one.reason for one in news],
        "retries": [None if one.again is None else one.again.visible_at for one in news],
        "wanted": [kind == SUCCEEDED and one.is_wanted for kind, one in told],
        "errors": [one.error for one in news],
    }


def _freed(held: Held, contents: dict[ParcelId, _Content], done: Iterable[Ending]) -> Freed:
    """What ended parcels leave behind, and the tokens of what did not start."""
    freed = Freed()
    for parcel in held.emptied:
        if (ended := contents.get(parcel)) is not None:
            freed.note(ended.tenant, ended.queue, ended.terms)
    for one in done:
        if one.started_at is None:
            home, counted = contents[one.parcel], one.parcel in held.counted
            freed.at, place = one.ended_at, (home.tenant, home.queue)
            freed.refund(place, home.terms, admitted=home.admitted, counted=counted)
    return freed


class Written(NamedTuple):
    """What was written of reports."""

    endings: list[Ending]
    unwritten: set[tuple[RunId, Fence]]
    """Successes that may not have been written: their lease is gone, or they were told before."""
    finished: set[tuple[RunId, Fence]]
    """Successes told under good leases, of runs that these were about."""


async def write_endings(
    connection: Connection,
    worker: WorkerId,
    shard: ShardId,
    held: Held,
    endings: Sequence[Ending],
    *,
    margin: timedelta,
) -> list[Ending]:
    """Every kind of end inside a transaction of the caller's; returns those that were written."""
    found = await write_reports(connection, worker, shard, held, (), endings, margin=margin)
    return found.endings


async def write_reports(
    connection: Connection,
    worker: WorkerId,
    shard: ShardId,
    held: Held,
    streaks: Sequence[Streak],
    endings: Sequence[Ending],
    *,
    margin: timedelta,
) -> Written:
    """Ends that one worker tells about one shard, inside a transaction of the caller's.

    Unlike a worker on the database, the caller need not know what else its parcels hold: a parcel
    whose last run ends here goes, and the others are cut down to what is left. A constant number of
    statements, however many ends there are. What is freed is noted in `held`; the caller releases
    it when it needs no more parcels. Who has locked parcels already has called `hold_jobs_of`
    before, or knows that no ending is about a job.
    """
    slow = _Slow(connection, worker, shard, margin)
    await hold_jobs_of(connection, shard, held, endings)
    contents = await slow.hold(held)
    fast = _ours(streaks, contents)
    done = {run for one in fast for run in one.runs}
    listed = [one for one in judged(endings, contents) if one.run not in done]
    ended = done | {one.run for one in listed}
    emptied = [parcel for parcel, content in contents.items() if content.runs <= ended]
    told = {(run, one.fence) for one in streaks for run in one.runs}
    finished = {(run, one.fence) for one in fast for run in one.runs}
    if fast:
        with_others = {one.parcel for one in listed}
        leaving = Held((), [parcel for parcel in emptied if parcel not in with_others])
        written = await Succeeding(connection, worker, shard).finish(leaving, fast, contents)
        if written == len(done):
            told -= finished
        # Else not all of them were to be finished: somebody may have ended some, or we ourselves.
    held.emptied = emptied
    wrote = await slow.finish(held, listed, contents) if listed else []
    if not listed:
        held.freed = _freed(held, contents, ())
    await slow.shrink([parcel for parcel in contents if parcel not in emptied], sorted(ended))
    return Written(wrote, told, finished)


def _ours(streaks: Sequence[Streak], contents: Mapping[ParcelId, _Content]) -> list[Streak]:
    """Successes told under leases that are good, of runs that these are about, each once."""
    good = {(parcel, content.fence) for parcel, content in contents.items()}
    seen: set[RunId] = set()
    found: list[Streak] = []
    for streak in Held.valid(streaks, good):
        runs = contents[streak.parcel].runs - seen if seen else contents[streak.parcel].runs
        if not (len(streak.runs) == len({*streak.runs}) and runs.issuperset(streak.runs)):
            streak = _cut(streak, runs)  # noqa: PLW2901 -- what is left of it
        seen.update(streak.runs)
        if streak.runs:
            found.append(streak)
    return found


def _cut(streak: Streak, among: Collection[RunId]) -> Streak:
    """It without runs that it cannot be about, and each of them once."""
    kept = {run: place for place, run in reversed([*enumerate(streak.runs)]) if run in among}
    places = sorted(kept.values())
    results = None if streak.results is None else [streak.results[place] for place in places]
    return replace(streak, runs=[streak.runs[place] for place in places], results=results)
