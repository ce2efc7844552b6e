"""Judges a recorded history against the promises. Pure, and O(n log n) in what was recorded.

Every check returns what it met (evidence) and what it found wrong. A check that met nothing has
proven nothing: it says UNKNOWN, not PASS. Numbers of promises are those of `docs/decisions`.

Long because every promise is judged here, one function each, with the small tools they share.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from betimes.testing.history import (
    DEAD,
    FINAL_STATES,
    OVERLAP_SKIPPED,
    SKIPPED,
    SUCCEEDED,
    FaultFact,
    History,
    StartFact,
)

EXAMPLES_MAX = 16
OWNER_FAULTS = frozenset({"kill coordinator", "freeze coordinator", "cut coordinator"})
K = TypeVar("K")
V = TypeVar("V")


class Verdict(StrEnum):
    """What a check came to."""

    PASS = "pass"  # noqa: S105 -- a verdict
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    promise: str
    name: str
    evidence: int
    wrong: int
    examples: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Anything wrong fails; nothing met proves nothing."""
        if self.wrong:
            return Verdict.FAIL
        return Verdict.PASS if self.evidence else Verdict.UNKNOWN


Judged = tuple[int, Iterable[str]]
Check = Callable[[History], Judged]


def judge(history: History) -> dict[str, Finding]:
    """Every check, by the number of its promise."""
    return {promise: _finding(promise, name, check(history)) for promise, name, check in CHECKS}


def table(findings: dict[str, Finding]) -> str:
    """For people: one line per promise, examples below those that failed."""
    lines = []
    for one in findings.values():
        lines.append(
            f"{one.promise:4} {one.name:32} {one.verdict:8} evidence {one.evidence:7} "
            f"wrong {one.wrong}"
        )
        lines += [f"       {example}" for example in one.examples]
    return "\n".join(lines)


def expected_fires(every: int, created_at: float, until: float) -> list[int]:
    """The dumb second implementation: whole multiples of a period after one instant."""
    first = int(created_at // every) * every
    return [at for at in range(first, int(until) + 1, every) if created_at < at <= until]


def durable(history: History) -> Judged:
    """I1: whatever was acknowledged is there, and nothing is there that nobody asked for."""
    jobs = {job.id for job in history.jobs}
    stored = jobs | {run.id for run in history.runs if run.job is None}
    asked = history.acknowledged | history.unknown
    lost = (f"acknowledged, gone: {one}" for one in sorted(history.acknowledged - stored))
    strange = (f"nobody asked for: {one}" for one in sorted(stored - asked))
    return len(history.acknowledged), _both(lost, strange)


def single(history: History) -> Judged:
    """I3: at most one run per job and fire, in the database and before the handlers' eyes."""
    stored = Counter((run.job, run.fire_at) for run in history.runs if run.job is not None)
    seen: dict[tuple[UUID | None, float | None], set[UUID]] = defaultdict(set)
    for start in history.starts:
        if start.job is not None:
            seen[start.job, start.fire_at].add(start.run)
    twice = (f"stored {times} times: {key}" for key, times in stored.items() if times > 1)
    two = (f"two runs were executed for {key}" for key, runs in seen.items() if len(runs) > 1)
    return len(stored), _both(twice, two)


def accounted(history: History) -> Judged:
    """I4: every expected fire is one run or one recorded skip, and there is no other run.

    A run that gave way to an earlier one keeps its row, and a skip says so: together they account
    for the fire once, and neither may be without the other.
    """
    fires = _group((run.job, run.fire_at) for run in history.runs if run.job is not None)
    skips = _group(
        (skip.job, (skip.fire_at, skip.until_at))
        for skip in history.skips
        if skip.reason != OVERLAP_SKIPPED
    )
    evidence, wrong = 0, list(_unpaired(history))
    for job in history.jobs:
        expected = expected_fires(job.every, job.created_at, history.bounds.until)
        have = {round(fire) for fire in fires.get(job.id, ()) if fire is not None}
        spans = sorted(skips.get(job.id, ()))
        begins = [begin for begin, _ in spans]
        evidence += len(expected)
        for fire in expected:
            place = bisect_right(begins, fire)
            skipped = place > 0 and spans[place - 1][1] >= fire
            if (fire in have) == skipped:
                what = "both run and skipped" if skipped else "neither run nor skipped"
                wrong.append(f"{job.id} at {fire}: {what}")
        wrong += [
            f"{job.id} at {fire}: never expected"
            for fire in have
            if fire % job.every or fire <= job.created_at
        ]
    return evidence, wrong


def _unpaired(history: History) -> Iterator[str]:
    """Runs that were skipped for overlap without a record, and records without such a run."""
    gave_way = {
        (run.job, run.fire_at)
        for run in history.runs
        if run.state == SKIPPED and run.reason == OVERLAP_SKIPPED and run.job is not None
    }
    said = {(skip.job, skip.fire_at) for skip in history.skips if skip.reason == OVERLAP_SKIPPED}
    yield from (f"{job} at {fire}: gave way, unrecorded" for job, fire in gave_way - said)
    yield from (f"{job} at {fire}: recorded, did not give way" for job, fire in said - gave_way)


def apart(history: History) -> Judged:
    """I18: runs of a job whose policy keeps them apart are never leased side by side.

    An attempt lasts from its lease to its end, or to the next lease of the same run.
    """
    jobs = {job.id for job in history.jobs if job.one_at_a_time}
    whose = {run.id: run.job for run in history.runs if run.job in jobs}
    moments = [(one.order, 1, one.run) for one in history.leases if one.run in whose]
    moments += [(one.order, 0, one.run) for one in history.completions if one.run in whose]
    held: dict[UUID, UUID] = {}
    evidence, wrong = 0, []
    # Of an end and a lease at the same moment the end comes first: it made the lease possible.
    for order, leased, run in sorted(moments):
        job = whose[run]
        if job is None:
            continue
        if not leased:
            if held.get(job) == run:
                del held[job]
            continue
        evidence += 1
        if held.setdefault(job, run) != run:
            wrong.append(f"{job}: {run} was leased beside {held[job]} at {order}")
    return evidence, wrong


def bounded(history: History) -> Judged:
    """I5: the first start is late by no more than the bound, counted from due or from healing."""
    first = _first_starts(history.starts)
    healed = _merged(history.faults, history.bounds.lateness)
    begins = [begin for begin, _ in healed]
    wrong, evidence = [], 0
    for run in history.runs:
        if run.id not in first or run.due_at > history.bounds.until:
            continue
        evidence += 1
        place = bisect_right(begins, run.due_at) - 1
        since = max(run.due_at, healed[place][1]) if place >= 0 else run.due_at
        late = first[run.id].at - since
        if late > history.bounds.lateness:
            wrong.append(f"{run.id}: started {late:.3f} s late")
    return evidence, wrong


def never_early(history: History) -> Judged:
    """I6: nothing starts before it is due, and no cursor ever goes back."""
    due = {run.id: run.due_at for run in history.runs}
    early = [
        f"{start.run}: started {due[start.run] - start.at:.3f} s early"
        for start in history.starts
        if start.run in due and start.at < due[start.run] - history.bounds.early
    ]
    marks: dict[int, float] = {}
    back = []
    for row in sorted(history.shards, key=lambda row: row.order):
        if row.published_through is None:
            continue
        if row.published_through < marks.get(row.shard, float("-inf")):
            back.append(f"shard {row.shard}: the cursor went back at {row.order}")
        marks[row.shard] = row.published_through
    return len(history.starts) + len(marks), _both(early, back)


def atomic(history: History) -> Judged:
    """I8: in every snapshot a job goes on after its latest run, with nothing missing between."""
    wrong = [
        f"{plan.job}: goes on at {plan.next_fire_at}, has {plan.latest_fire_at}, "
        f"lacks {plan.missing}"
        for plan in history.plans
        if plan.next_fire_at <= plan.latest_fire_at or plan.missing
    ]
    return len(history.plans), wrong


def monotonic(history: History) -> Judged:
    """I9: epochs of a shard and fences of a run only rise, and each has one holder."""
    holders: dict[tuple[int, int], UUID] = {}
    wrong = []
    for row in history.shards:
        if row.owner is None:
            continue
        before = holders.setdefault((row.shard, row.epoch), row.owner)
        if before != row.owner:
            wrong.append(f"shard {row.shard}: two owners in epoch {row.epoch}")
    fences: dict[UUID, int] = {}
    for lease in sorted(history.leases, key=lambda lease: lease.order):
        if lease.fence <= fences.get(lease.run, 0):
            wrong.append(f"{lease.run}: fence {lease.fence} was handed out again")
        fences[lease.run] = lease.fence
    return len(holders) + len(history.leases), wrong


def stale_owner(history: History) -> Judged:
    """I10: no commit of a lower epoch after a higher one; somebody really was refused."""
    epochs: dict[int, int] = {}
    wrong = []
    for row in sorted(history.shards, key=lambda row: row.order):
        if row.epoch < epochs.get(row.shard, 0):
            wrong.append(f"shard {row.shard}: epoch {row.epoch} wrote after {epochs[row.shard]}")
        epochs[row.shard] = max(row.epoch, epochs.get(row.shard, 0))
    return history.coordinator_refusals, _both(wrong, history.stale_accepted)


def stale_worker(history: History) -> Judged:
    """I11: one accepted completion per run, under the newest fence; nothing leaves its end."""
    leases = _group((lease.run, (lease.order, lease.fence)) for lease in history.leases)
    done: Counter[UUID] = Counter()
    wrong = []
    for one in sorted(history.completions, key=lambda one: one.order):
        if one.before in FINAL_STATES:
            wrong.append(f"{one.run}: left the final state {one.before}")
        if one.after in (SUCCEEDED, DEAD):
            done[one.run] += 1
            newest = _newest(leases.get(one.run, []), one.order)
            if one.fence != newest:
                wrong.append(f"{one.run}: finished under fence {one.fence}, newest was {newest}")
    wrong += [f"{run}: finished {times} times" for run, times in done.items() if times > 1]
    return history.worker_refusals, wrong


def takeover(history: History) -> Judged:
    """I12: what a dead, frozen or cut owner held has another owner within the bound."""
    grants = _group(
        (row.shard, (row.at, row.owner)) for row in history.shards if row.owner is not None
    )
    evidence, wrong = 0, []
    for fault in history.faults:
        if fault.kind not in OWNER_FAULTS or fault.owner is None:
            continue
        if fault.ended_at - fault.began_at < history.bounds.takeover:
            continue  # it was back before anybody had to take over
        for shard in fault.shards:
            evidence += 1
            after = [
                at
                for at, owner in grants.get(shard, ())
                if at >= fault.began_at and owner != fault.owner
            ]
            late = min(after, default=float("inf")) - fault.began_at
            if late > history.bounds.takeover:
                wrong.append(f"shard {shard}: {late:.3f} s without an owner after {fault.kind}")
    return evidence, wrong


def terminated(history: History) -> Judged:
    """I14: after the drain every run that was due has come to its end."""
    due = [run for run in history.runs if run.due_at <= history.bounds.until]
    return len(due), [f"{run.id}: still {run.state}" for run in due if run.state < SUCCEEDED]


def intended(history: History) -> Judged:
    """I15: every start follows a lease with its fence; at most as many starts as attempts."""
    leased = {(lease.run, lease.fence): lease.at for lease in history.leases}
    most = {run.id: run.max_attempts for run in history.runs}
    wrong = []
    for start in history.starts:
        at = leased.get((start.run, start.fence))
        if at is None or at > start.at + history.bounds.early:
            wrong.append(f"{start.run}: started under fence {start.fence} without a lease")
        if start.attempt > most.get(start.run, start.attempt):
            wrong.append(f"{start.run}: attempt {start.attempt} of {most[start.run]}")
    numbers = Counter((start.run, start.fence) for start in history.starts)
    wrong += [
        f"{run}: started {n} times under {fence}" for (run, fence), n in numbers.items() if n > 1
    ]
    return len(history.starts), wrong


def contained(history: History) -> Judged:
    """I17: what kills its worker does so at most so often, and is a dead letter then."""
    deaths = Counter(death.run for death in history.deaths)
    runs = {run.id: run for run in history.runs}
    wrong = []
    for run, times in deaths.items():
        fact = runs.get(run)
        if fact is None or fact.state != DEAD or run not in history.dead_letters:
            wrong.append(f"{run}: killed {times} workers and is no dead letter")
        elif times > fact.max_attempts:
            wrong.append(f"{run}: killed {times} workers, {fact.max_attempts} are allowed")
    wrong += [
        f"{run}: a dead letter that killed nobody" for run in history.dead_letters - deaths.keys()
    ]
    return sum(deaths.values()), wrong


def bites(history: History) -> Judged:
    """I19: no attempt is handed out after a cancellation, no fire lies within a pause."""
    handed = {(lease.run, lease.fence): lease.at for lease in history.leases}
    never = float("inf")
    wrong = [
        f"{start.run}: attempt {start.attempt} began after its cancellation"
        for start in history.starts
        if handed.get((start.run, start.fence), start.at)
        > history.cancelled.get(start.run, never) + history.bounds.early
    ]
    fires = _group((start.job, start.fire_at) for start in history.starts if start.job is not None)
    for job, acknowledged_at, resumed_at in history.paused:
        known = sorted(fire for fire in fires.get(job, ()) if fire is not None)
        place = bisect_right(known, acknowledged_at)
        if place < bisect_left(known, resumed_at):
            wrong.append(f"{job}: executed the fire at {known[place]} of its pause")
    return len(history.cancelled) + len(history.paused), wrong


CHECKS: tuple[tuple[str, str, Check], ...] = (
    ("I1", "acknowledged is durable", durable),
    ("I3", "one run per fire", single),
    ("I4", "every fire accounted for", accounted),
    ("I5", "bounded lateness", bounded),
    ("I6", "never early, never backwards", never_early),
    ("I8", "advance and insert together", atomic),
    ("I9", "tokens only rise", monotonic),
    ("I10", "stale owners refused", stale_owner),
    ("I11", "stale workers refused", stale_worker),
    ("I12", "takeover in time", takeover),
    ("I14", "everything ends", terminated),
    ("I15", "intent before effect", intended),
    ("I17", "poison contained", contained),
    ("I18", "one run of a job at a time", apart),
    ("I19", "pause and cancel bite", bites),
)


def _finding(promise: str, name: str, judged: Judged) -> Finding:
    evidence, wrong = judged
    listed = list(wrong)
    return Finding(promise, name, evidence, len(listed), tuple(listed[:EXAMPLES_MAX]))


def _both(one: Iterable[str], other: Iterable[str]) -> Iterator[str]:
    yield from one
    yield from other


def _group(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    groups: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _first_starts(starts: Iterable[StartFact]) -> dict[UUID, StartFact]:
    first: dict[UUID, StartFact] = {}
    for start in sorted(starts, key=lambda start: start.at):
        first.setdefault(start.run, start)
    return first


def _merged(faults: Iterable[FaultFact], after: float) -> list[tuple[float, float]]:
    """Spans in which something was broken; faults closer than `after` make one span."""
    spans: list[tuple[float, float]] = []
    for fault in sorted(faults, key=lambda fault: fault.began_at):
        if spans and fault.began_at <= spans[-1][1] + after:
            spans[-1] = (spans[-1][0], max(spans[-1][1], fault.ended_at))
        else:
            spans.append((fault.began_at - after, fault.ended_at))
    return spans


def _newest(leases: list[tuple[int, int]], order: int) -> int:
    place = bisect_left(leases, (order, 0))
    return leases[place - 1][1] if place else 0
