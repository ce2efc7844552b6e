"""Which fires there must have been, and what became of them. Plain arithmetic.

For each fire of each job that must have happened: exactly one run or exactly one recorded decision,
no matter what was killed, frozen, cut or filled. What a fire whose fate depends on the order of two
requests may become (while a pause was being asked for) is left open.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from blackbox.facts import Decision, History, Job, Row, Seen

ENDED = {"succeeded", "dead", "cancelled", "skipped", "expired", "missed"}
EXAMPLES_MAX = 12
EARLY_SECONDS = 0.05
CANCEL_SECONDS = 35.0
"""An attempt that was leased before the cancellation may be seen until its lease is over: a worker
that was frozen in between goes on with it. The lease lasts 30 s."""
STAMP_SECONDS = 0.05
GIVEN_WAY = {"OVERLAP_SKIPPED"}
"""What gave way to an earlier run is told twice: as a skipped run and as a decision about it."""
MUST_BE_ZERO = (
    "lost",
    "enqueued_twice",
    "same_fence_twice",
    "early",
    "run_and_decision",
    "decided_twice",
    "wrong_counts",
    "taken_back",
    "unproven",
    "stale_accepted",
    "ran_while_paused",
    "started_after_cancel",
    "unexpected_fires",
    "acknowledged_lost",
    "keys_with_two_answers",
    "workflows_wrong",
    "marks_fell",
    "finished_before_start",
    "unknown",
)


@dataclass
class Judgement:
    """Counts, and a few examples of everything that must not be."""

    occurrences: int = 0
    became_runs: int = 0
    decided: Counter[str] = field(default_factory=Counter)
    deliveries: int = 0
    redelivered: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    lateness: list[float] = field(default_factory=list)

    def against(self, what: str, example: str) -> None:
        """Something that must not be."""
        self.counts[what] += 1
        if len(self.examples[what]) < EXAMPLES_MAX:
            self.examples[what].append(example)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.counts[what] for what in MUST_BE_ZERO)


def fires_between(job: Job, after: float, until: float) -> Iterator[int]:
    """Fires in (after, until]."""
    fire = (int(after - job.phase) // job.period) * job.period + job.phase
    while fire <= until:
        if fire > after:
            yield fire
        fire += job.period


def judge(history: History) -> Judgement:
    """Compare the oracle, the evidence and the tables."""
    found = Judgement()
    seen = defaultdict(list)
    for fact in history.seen:
        seen[fact.run].append(fact)
    rows = {row.id: row for row in history.rows}
    _fires(history, found)
    _singles(history, rows, found)
    _evidence(history, rows, seen, found)
    _ends(history, seen, found)
    _workflows(history, rows, found)
    _marks(history, found)
    for key, ids in history.keys.items():
        if len(ids) > 1:
            found.against("keys_with_two_answers", f"{key}: {sorted(ids)}")
    for request in history.unanswered:
        found.against("unknown", f"nobody knows: {request}")
    return found


def _fires(history: History, found: Judgement) -> None:
    """Every fire of every recurring job."""
    runs: dict[UUID, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    decisions: dict[UUID, list[Decision]] = defaultdict(list)
    for row in history.rows:
        if row.job is not None and row.fire is not None:
            runs[row.job][round(row.fire)].append(row)
    for decision in history.decisions:
        decisions[decision.job].append(decision)
    for job in history.jobs:
        said = _Decisions(job, decisions[job.id])
        for what, example in said.wrong:
            found.against(what, example)
        must = set(fires_between(job, job.acknowledged, history.until))
        may = set(fires_between(job, job.invoked, history.until + 3600))
        for fire in sorted(must):
            _fire(job, fire, runs[job.id][fire], said.of(fire), found)
        for fire in set(runs[job.id]) - may:
            found.against("unexpected_fires", f"{job.id} has a run for {fire}")


def _fire(job: Job, fire: int, runs: list[Row], said: list[Decision], found: Judgement) -> None:
    found.occurrences += 1
    name = f"{job.kind} job {job.id} (catchup {job.catchup}) fire {fire}"
    if not runs and not said:
        found.against("lost", name)
    if len(runs) > 1:
        found.against("enqueued_twice", f"{name}: {[str(row.id) for row in runs]}")
    codes = [decision.code for decision in said]
    apart = [code for code in codes if code not in GIVEN_WAY]
    if runs and apart:
        found.against("run_and_decision", f"{name}: {runs[0].state} and {codes}")
    if len(apart) > 1:
        found.against("decided_twice", f"{name}: {codes}")
    if runs:
        found.became_runs += 1
    elif codes:
        found.decided[codes[0]] += 1
    if runs and runs[0].state != "skipped" and _surely_paused(job, fire):
        found.against("ran_while_paused", name)


def _surely_paused(job: Job, fire: int) -> bool:
    return any(
        not pause.unclear
        and pause.acknowledged is not None
        and pause.resume_invoked is not None
        and pause.acknowledged < fire < pause.resume_invoked
        for pause in job.pauses
    )


class _Decisions:
    """The decisions about one job, found by fire."""

    def __init__(self, job: Job, decisions: list[Decision]) -> None:
        self._decisions = sorted(decisions, key=lambda decision: decision.first)
        self._starts = [decision.first for decision in self._decisions]
        self._longest = max((one.last - one.first for one in self._decisions), default=0.0)
        self.wrong: list[tuple[str, str]] = []
        for decision in self._decisions:
            counted = sum(1 for _ in fires_between(job, decision.first - 0.5, decision.last))
            if counted != decision.fires:
                text = f"{job.id} {decision.code} {decision.first}..{decision.last}"
                self.wrong.append(("wrong_counts", f"{text}: {decision.fires}, not {counted}"))

    def of(self, fire: int) -> list[Decision]:
        low = bisect_left(self._starts, fire - self._longest - 0.5)
        high = bisect_left(self._starts, fire + 0.5)
        return [one for one in self._decisions[low:high] if one.first - 0.5 < fire < one.last + 0.5]


def _singles(history: History, rows: dict[UUID, Row], found: Judgement) -> None:
    """What was acknowledged once is there once."""
    by_job = defaultdict(list)
    for row in history.rows:
        by_job[row.job].append(row)
    decided = {decision.job for decision in history.decisions}
    for single in history.singles:
        if single.due > history.until:
            continue
        found.occurrences += 1
        if single.run is not None:
            there = [rows[single.run]] if single.run in rows else []
        else:
            there = by_job[single.job]
        if len(there) > 1:
            found.against("enqueued_twice", f"{single}: {[str(row.id) for row in there]}")
        if there:
            found.became_runs += 1
        elif single.job in decided:
            found.decided["single"] += 1
        else:
            found.against("acknowledged_lost", str(single))


def _evidence(
    history: History, rows: dict[UUID, Row], seen: dict[UUID, list[Seen]], found: Judgement
) -> None:
    """What targets and tasks saw."""
    found.deliveries = len(history.seen)
    for run, facts in seen.items():
        found.redelivered += len(facts) > 1
        row = rows.get(run)
        if row is None:
            found.against("taken_back", f"{run} was executed {len(facts)} times and has no row")
            continue
        fences = Counter(fact.fence for fact in facts)
        for fence, times in fences.items():
            if times > 1:
                modes = [fact.mode for fact in facts if fact.fence == fence]
                found.against("same_fence_twice", f"{run} fence {fence}: {times} times, {modes}")
        first = min(facts, key=lambda fact: fact.at)
        if first.database_at < row.due - EARLY_SECONDS:
            found.against("early", f"{run} by {row.due - first.database_at:.3f} s")
        found.lateness.append(first.database_at - row.due)
        if row.result_fence is not None and max(fences) > row.result_fence:
            text = f"{run}: the result is of fence {row.result_fence}, {max(fences)} was executed"
            found.against("stale_accepted", text)
        if run in history.cancelled:
            late = [f for f in facts if f.at > history.cancelled[run] + CANCEL_SECONDS]
            if late:
                found.against("started_after_cancel", f"{run}: {late[0]}")


def _ends(history: History, seen: dict[UUID, list[Seen]], found: Judgement) -> None:
    """Everything that was due has ended, and success has its evidence."""
    for row in history.rows:
        if row.due > history.until:
            continue
        if row.state not in ENDED:
            found.against("unknown", f"{row.id} has not ended: {row.state}, due {row.due}")
        if row.state == "succeeded":
            facts = [fact for fact in seen[row.id] if fact.fence == row.fence]
            if not facts:
                found.against("unproven", f"{row.id} succeeded under fence {row.fence}, unseen")
            elif not history.stepped and row.finished is not None:
                before = max(fact.at for fact in facts) - row.finished
                if before > STAMP_SECONDS:
                    found.against("finished_before_start", f"{row.id} by {before:.3f} s")


def _workflows(history: History, rows: dict[UUID, Row], found: Judgement) -> None:
    """Each workflow run that was acknowledged succeeds, and each of its nodes is one run."""
    for run, nodes in history.workflow_runs.items():
        state, members = history.workflow_rows.get(run, ("gone", []))
        succeeded = sum(rows[one].state == "succeeded" for one in members if one in rows)
        if state != "succeeded" or len(members) != nodes or succeeded != nodes:
            text = f"{run}: {state}, {len(members)} runs for {nodes} nodes, {succeeded} succeeded"
            found.against("workflows_wrong", text)


def _marks(history: History, found: Judgement) -> None:
    """Epochs and cursors never fall."""
    newest: dict[int, tuple[int, float]] = {}
    for shard, epoch, through in history.cursors:
        before = newest.get(shard, (0, float("-inf")))
        now = (epoch, before[1] if through is None else through)
        if now[0] < before[0] or now[1] < before[1]:
            found.against("marks_fell", f"shard {shard}: {before} then {now}")
        newest[shard] = (max(now[0], before[0]), max(now[1], before[1]))
