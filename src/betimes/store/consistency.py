"""A checker of what must be true at every moment, for operators and for tests.

Every fire has one account: a run, or one decision. A run is in one parcel at most, is there, and is
published: the cursor has passed it, or its row says that somebody else has made its parcel.

Safe on a live and large database: it only reads, page by page, each page in a statement of its own
and bounded in number; what was not looked at is told. Every complaint is true of one snapshot: what
is compared is read in one statement, or can only become less wrong between two.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.errors import Refused
from betimes.domain.ids import ShardId, floor_of, to_ms, to_text
from betimes.domain.job import SCHEDULE_UNREADABLE
from betimes.schedule import ScheduleCache
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.store.server import read_clock

SQL = load("consistency")
SHARDS = load("shards")
DENIED = ("DST_GAP_SKIPPED", "DST_OVERLAP_MERGED", "CALENDAR_EXCLUDED")
"""Occurrences that were taken away: there is no fire that a run could be of."""
LOOK_BACK = timedelta(days=7)
MOVED_MAX = timedelta(days=1)
"""How much later than its fire jitter or a window makes a run due, as far as is looked."""
SETTLED_AFTER = timedelta(minutes=5)
"""A parcel that is visible for less may hold a run that a verb has replaced: whoever leases it
drops that."""
PAGE = 1_000
PAGES_MAX = 20
FINDINGS_MAX = 100
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """One thing that cannot be, in a sentence."""

    kind: str
    sentence: str
    is_harmful: bool = True
    """Whether something ran that should not have, or will; otherwise it is only untidy."""


@dataclass(slots=True)
class Checked:
    """What was looked at, and what was found."""

    found: list[Inconsistency] = field(default_factory=list)
    decisions: int = 0
    runs: int = 0
    is_partial: bool = False
    """There was more than may be looked at at once."""


@dataclass(frozen=True, slots=True)
class Checker:
    """Looks through the shards one by one."""

    database: Database
    pages: int = PAGES_MAX
    schedules: ScheduleCache = field(default_factory=lambda: ScheduleCache(PAGE))

    async def check(self, *, now: datetime | None = None) -> Checked:
        """One bounded look at everything."""
        checked = Checked()
        at = await read_clock(self.database) if now is None else now
        rows = await self.database.many(SHARDS["count_shards"], lane=Lane.ENGINE)
        for number in range(rows[0]["shards"]):
            shard = ShardId(number)
            async for page in self._decisions(shard, checked, since=at - LOOK_BACK):
                checked.found += await self._accounts(shard, page)
            await self._parcels(shard, checked, settled=at - SETTLED_AFTER)
        return checked

    async def _decisions(
        self, shard: ShardId, checked: Checked, *, since: datetime
    ) -> AsyncIterator[Sequence[Any]]:
        after: tuple[UUID, datetime] = (NOBODY, BEGINNING)
        for _ in range(self.pages):
            rows = await self.database.many(
                SQL["list_decided"],
                lane=Lane.ENGINE,
                shard=shard,
                since=since,
                after_job=after[0],
                after_at=after[1],
                denied=list(DENIED),
                most=PAGE,
            )
            checked.decisions += len(rows)
            if rows:
                yield rows
            if len(rows) < PAGE:
                return
            after = rows[-1]["job_id"], rows[-1]["fire_at"]
        checked.is_partial = True

    async def _accounts(self, shard: ShardId, rows: Sequence[Any]) -> list[Inconsistency]:
        found = [complaint for row in rows for complaint in self._judged(row)]
        ran = await self.database.many(
            SQL["find_decided_runs"],
            lane=Lane.ENGINE,
            shard=shard,
            jobs=[row["job_id"] for row in rows],
            firsts=[row["fire_at"] for row in rows],
            lasts=[row["until_at"] for row in rows],
            lows=[floor_of(to_ms(row["fire_at"])) for row in rows],
            highs=[floor_of(to_ms(row["until_at"] + MOVED_MAX)) for row in rows],
        )
        return found + [_both(rows[one["number"] - 1], one) for one in ran]

    def _judged(self, row: Any) -> Iterator[Inconsistency]:
        job = to_text("job", row["job_id"])
        if row["next_at"] is not None:
            yield Inconsistency(
                "decided_twice",
                f"two decisions are about the fire of {_when(row['next_at'])} of {job}: "
                f"{row['code']} and {row['next_code']}",
            )
        counted = self._count(row)
        if counted is not None and counted != row["fires"]:
            yield Inconsistency(
                "miscounted",
                f"a decision {row['code']} of {job} counts {row['fires']} fires from "
                f"{_when(row['fire_at'])} to {_when(row['until_at'])}, and by its schedule there "
                f"are {counted}",
            )

    def _count(self, row: Any) -> int | None:
        """How many fires the schedule has in a range, where it is known and can be read."""
        if row["schedule"] is None or row["code"] == SCHEDULE_UNREADABLE:
            return None
        try:
            schedule = self.schedules.get(row["schedule"], str(row["job_id"]))
        except Refused:
            return None
        if schedule.is_fixed_delay:
            return None
        just_before = row["fire_at"] - timedelta(microseconds=1)
        return schedule.count(just_before, row["until_at"])

    async def _parcels(self, shard: ShardId, checked: Checked, *, settled: datetime) -> None:
        after = NOBODY
        for _ in range(self.pages):
            *rows, last = await self.database.many(
                SQL["list_parcelled"],
                lane=Lane.ENGINE,
                shard=shard,
                after=after,
                settled=settled,
                most=PAGE,
                findings=FINDINGS_MAX,
            )
            checked.runs += last["runs"]
            checked.found += [complaint for row in rows for complaint in _misplaced(row)]
            if last["parcel_id"] is None:
                return
            after = last["parcel_id"]
        checked.is_partial = True


def _both(decision: Any, run: Any) -> Inconsistency:
    return Inconsistency(
        "run_and_decision",
        f"the fire of {_when(run['fire_at'])} of {to_text('job', decision['job_id'])} was recorded "
        f"as {decision['code']}, and has the run {to_text('run', run['run_id'])} as well",
    )


def _misplaced(row: Any) -> Iterator[Inconsistency]:
    run, parcel = to_text("run", row["run_id"]), row["parcel_id"]
    if row["twice"]:
        yield Inconsistency("parcelled_twice", f"{run} is in two parcels, one of them {parcel}")
    if row["unpublished"]:
        yield Inconsistency(
            "unpublished",
            f"{run} is in the parcel {parcel} and counts as not published: a new owner of its "
            "shard may take it back, or publish it again",
        )
    if row["gone"]:
        yield Inconsistency(
            "run_gone",
            f"the parcel {parcel} names {run}, and there is no such run: nothing will be executed, "
            "and whoever leases the parcel drops it",
            is_harmful=False,
        )


def _when(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
