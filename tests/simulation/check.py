"""The judge: compares what was seen with what was promised (the invariants I1 to I25).

Each check counts what it looked at: an invariant that never met its situation is unknown, not
kept. Facts come from tasks and clients themselves, from what the database noted in the same
transactions, and from the tables at the end; times are those of the database's clock.
"""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from simulation.facts import DRAIN, Check, Facts, Verdict
from simulation.history import History
from simulation.oracle import SECOND, fires_between
from simulation.plan import JobPlan
from simulation.timing import IN_TIME

QUEUED, RETRY_WAIT, SUCCEEDED, DEAD, CANCELLED, SKIPPED, EXPIRED, MISSED = 1, 3, 4, 5, 6, 7, 8, 9
FINAL = {SUCCEEDED, DEAD, CANCELLED, SKIPPED, EXPIRED, MISSED}
SCHEDULE = 0
LINED_SECONDS = 0.1
"""What takes no longer does not hold up those behind it."""
TOLD_TWICE = {"OVERLAP_SKIPPED"}
SUSPECT_AFTER = 2
EMPTYING_SECONDS = 16.0
"""How long a worker tries to become empty, before it takes suspects in beside what it has."""
JOURNEYS = 4
"""Of a worker of an app to the service and back, from one run of a line to the next."""
EDGES = {
    *((None, after) for after in (0, QUEUED, SKIPPED)),
    *((0, after) for after in (QUEUED, RETRY_WAIT, *FINAL)),
    *((QUEUED, after) for after in (RETRY_WAIT, *FINAL)),
    *((RETRY_WAIT, after) for after in (SUCCEEDED, DEAD, CANCELLED, EXPIRED)),
}
"""What may follow upon what, as it is stored; nothing leaves a final state here."""


def judge(history: History) -> Verdict:
    """Everything about one seed."""
    verdict = Verdict()
    facts = Facts(history)
    for check in CHECKS:
        check(facts, verdict)
    return verdict


def acknowledged_survives(facts: Facts, verdict: Verdict) -> None:
    """I1: what a client was told is there at the end."""
    for one in facts.history.asked:
        if not one.ok:
            continue
        if one.verb == "create":
            verdict.saw("I1")
            if one.job not in facts.history.jobs:
                verdict.broken("I1", f"job {one.job} was acknowledged and is gone")
        elif one.verb in {"enqueue", "enqueue_later", "run_now"}:
            verdict.saw("I1")
            if UUID(one.answer) not in facts.history.runs:
                verdict.broken("I1", f"run {one.answer} was acknowledged and is gone")
    for run, done in facts.executed.items():
        verdict.saw("I1")
        if run not in facts.history.runs:
            at = ", ".join(f"{one.at.time()} fence {one.fence}" for one in done)
            verdict.broken("I1", f"run {run} was executed ({at}) and has no row")


def idempotent(facts: Facts, verdict: Verdict) -> None:
    """I2: a key has made one thing at most."""
    answers = Counter(
        run["id"] for run in facts.history.runs.values() if run["trigger"] != SCHEDULE
    )
    wanted = [one for one in facts.history.asked if one.key.startswith(("run-", "now-"))]
    verdict.saw("I2", len(wanted))
    if len(answers) > len(wanted):
        verdict.broken("I2", f"{len(wanted)} keys have made {len(answers)} runs")
    creations = sum(1 for _ in facts.asked("create"))
    if len(facts.history.jobs) > creations:
        verdict.broken("I2", f"{creations} keys have made {len(facts.history.jobs)} jobs")


def every_fire_once(facts: Facts, verdict: Verdict) -> None:
    """I3, I4: a fire is one run or one recorded decision, and nothing else is a fire."""
    history = facts.history
    runs: dict[tuple[UUID, datetime], list[dict[str, object]]] = defaultdict(list)
    for run in history.runs.values():
        if run["trigger"] == SCHEDULE and run["job_id"] is not None:
            runs[run["job_id"], run["fire_at"]].append(run)
    for job, plan in facts.plans.items():
        row = history.jobs.get(job)
        if row is None:
            continue
        known = list(
            fires_between(plan, row["created_at"], facts.ended + 3600 * SECOND, began=history.began)
        )
        decided: Counter[datetime] = Counter()
        codes: dict[datetime, str] = {}
        for decision in (one for one in history.decisions if one["job_id"] == job):
            first, last = decision["fire_at"], decision["until_at"] or decision["fire_at"]
            inside = [fire for fire in known if first <= fire <= last]
            verdict.saw("I4")
            if len(inside) != decision["fires"] or not inside or inside[0] != first:
                verdict.broken(
                    "I4",
                    f"{plan.name}: {decision['code']} from {first.time()} to {last.time()} says"
                    f" {decision['fires']} fires, there are {len(inside)}",
                )
            for fire in inside:
                decided[fire] += 1
                codes[fire] = decision["code"]
        _account(facts, verdict, job, plan, set(known), runs, decided, codes)


def _account(
    facts: Facts,
    verdict: Verdict,
    job: UUID,
    plan: JobPlan,
    known: set[datetime],
    runs: dict[tuple[UUID, datetime], list[dict[str, object]]],
    decided: Counter[datetime],
    codes: dict[datetime, str],
) -> None:
    for (owner, fire), rows in runs.items():
        if owner == job and fire not in known:
            verdict.broken("I4", f"{plan.name}: a run {rows[0]['id']} of {fire}, which is no fire")
    for fire in sorted(known):
        rows = runs.get((job, fire), [])
        verdict.saw("I3", len(rows))
        if len(rows) > 1:
            verdict.broken("I3", f"{plan.name}: {len(rows)} runs of {fire.time()}")
        # What gave way to an earlier run is told twice: as a skipped run, and in a decision.
        live = [row for row in rows if row["reason"] not in TOLD_TWICE]
        many = decided[fire]
        if live and many:
            states = [row["state"] for row in live]
            verdict.broken(
                "I4",
                f"{plan.name}: {fire.time()} has a run in state {states} and {codes[fire]}",
            )
        elif many > 1:
            verdict.broken("I4", f"{plan.name}: {fire.time()} was decided {many} times")
        if fire > facts.until:
            continue
        verdict.saw("I4")
        if not rows and not many:
            gap = any(
                one["job_id"] == job and one["from_at"] <= fire <= one["until_at"]
                for one in facts.history.gaps
            )
            why = "still in a gap" if gap else "lost"
            verdict.broken("I4", f"{plan.name}: {fire.time()} has no run and no decision ({why})")


def never_early(facts: Facts, verdict: Verdict) -> None:
    """I6: nothing is leased before it is due; the mark of a shard never falls."""
    for run, changes in facts.leases.items():
        row = facts.history.runs.get(run)
        for change in changes:
            verdict.saw("I6")
            if row is not None and change.at < row["due_at"] and row["attempt"] <= 1:
                verdict.broken(
                    "I6", f"run {run} was leased {row['due_at'] - change.at} before it was due"
                )
    for shard, changes in facts.shards.items():
        for change in changes:
            verdict.saw("I6")
            before, after = change.fact["old_published"], change.fact["published"]
            if before is not None and (after is None or after < before):
                verdict.broken("I6", f"the mark of shard {shard} fell from {before} to {after}")


def advanced_together(facts: Facts, verdict: Verdict) -> None:
    """I8: the next fire of a job lies after everything that was planned of it."""
    newest: dict[UUID, datetime] = {}
    for run in facts.history.runs.values():
        if run["trigger"] == SCHEDULE and run["job_id"] is not None:
            last = newest.get(run["job_id"], run["fire_at"])
            newest[run["job_id"]] = max(last, run["fire_at"])
    for job, row in facts.history.jobs.items():
        if row["next_fire_at"] is not None and job in newest:
            verdict.saw("I8")
            if row["next_fire_at"] <= newest[job]:
                verdict.broken("I8", f"job {job} is to fire at {row['next_fire_at']} again")


def tokens_rise(facts: Facts, verdict: Verdict) -> None:
    """I9: each grant of a shard or a run has a larger token than every one before."""
    for shard, changes in facts.shards.items():
        for change in changes:
            fact = change.fact
            verdict.saw("I9")
            if fact["epoch"] < fact["old_epoch"]:
                verdict.broken("I9", f"the epoch of shard {shard} fell to {fact['epoch']}")
            if (
                fact["owner"] not in {None, fact["old_owner"]}
                and fact["epoch"] <= fact["old_epoch"]
            ):
                verdict.broken("I9", f"shard {shard} has a new owner and its old epoch")
    for run, leases in facts.leases.items():
        fences = [change.fact["fence"] for change in leases]
        verdict.saw("I9", len(fences))
        if any(after <= before for before, after in pairwise(fences)):
            verdict.broken("I9", f"run {run} was leased under the fences {fences}")


def executed_once_per_fence(facts: Facts, verdict: Verdict) -> None:
    """I11: nobody executes what somebody else has executed under the same fence."""
    for run, done in facts.executed.items():
        fences = Counter(one.fence for one in done)
        verdict.saw("fence", len(done))
        for fence, times in fences.items():
            if times > 1:
                who = ", ".join(f"{one.host} {one.at.time()}" for one in done if one.fence == fence)
                verdict.broken(
                    "fence", f"run {run} was executed {times} times under fence {fence}: {who}"
                )


def stale_refused(facts: Facts, verdict: Verdict) -> None:
    """I11: an end that is accepted is that of the newest lease, and there is one."""
    for run, turns in facts.turns.items():
        ends = 0
        for turn in turns:
            after = turn.fact["after"]
            if turn.fact["before"] == after or after not in {SUCCEEDED, RETRY_WAIT, DEAD}:
                continue
            ends += after in FINAL
            leases = [one.fact["fence"] for one in facts.leases[run] if one.n < turn.n]
            verdict.saw("I11")
            if leases and turn.fact["fence"] < max(leases):
                verdict.broken(
                    "I11",
                    f"run {run} ended in state {after} under fence {turn.fact['fence']}, its newest"
                    f" lease has {max(leases)}",
                )
        if ends > 1:
            verdict.broken("I11", f"run {run} came to {ends} ends")


def everything_ends(facts: Facts, verdict: Verdict) -> None:
    """I14, I17: whatever was due in time has ended; what is dead lies in the dead letters."""
    history = facts.history
    suspects = {run for run in history.runs if facts.lost(run) >= SUSPECT_AFTER}
    for run, row in history.runs.items():
        plan = facts.plans.get(row["job_id"]) if row["job_id"] else facts.alone.get(run)
        patience = timedelta(seconds=plan.takes * plan.attempts + 5) if plan else DRAIN
        if run in suspects:
            patience += _emptying(facts, len(suspects))
        # A line of slow runs is longer than we wait; each of an app costs it a few journeys.
        waits = plan is not None and plan.overlap != "allow" and _step(facts, plan) > LINED_SECONDS
        # What was late or lost its worker in the chaos begins again when all is well.
        ready = max(row["due_at"], facts.healed + timedelta(seconds=history.plan.worker_ttl))
        if ready > facts.ended - patience - 10 * SECOND or (waits and row["job_id"]):
            continue
        verdict.saw("I14")
        verdict.saw("suspects", run in suspects)
        if row["state"] not in FINAL:
            parcel = [one for one in facts.history.parcels if run in one["run_ids"]]
            where = f"in a parcel, fence {parcel[0]['fence']}" if parcel else "in no parcel"
            verdict.broken(
                "I14", f"run {run} was due {row['due_at'].time()}, state {row['state']}, {where}"
            )
        if row["state"] == DEAD:
            verdict.saw("I17")
            if run not in facts.history.letters:
                verdict.broken("I17", f"run {run} is dead and no dead letter")


def _emptying(facts: Facts, suspects: int) -> timedelta:
    """How long what has lost its workers twice waits for one that is empty.

    One that never is takes one of them in after a few tries, then two, then four, each time that
    those have ended.
    """
    longest = max(plan.takes for plan in facts.history.plan.jobs)
    return timedelta(seconds=EMPTYING_SECONDS + longest * suspects.bit_length())


def _step(facts: Facts, plan: JobPlan) -> float:
    """How long one run of a line holds up the next one."""
    journeys = JOURNEYS * facts.history.plan.rtt["app"] if plan.handler == "apped" else 0.0
    return plan.takes + journeys


def leased_before_executed(facts: Facts, verdict: Verdict) -> None:
    """I15: whatever was executed had been leased under that fence, and the lease was committed."""
    stepped = bool(facts.history.steps)
    for run, done in facts.executed.items():
        leases = {lease.fact["fence"]: lease.at for lease in facts.leases[run]}
        for one in done:
            verdict.saw("I15")
            at = leases.get(one.fence)
            if at is None:
                verdict.broken("I15", f"run {run} was executed under fence {one.fence}, unleased")
            elif at > one.at and not stepped:
                verdict.broken("I15", f"run {run} was executed {at - one.at} before its lease")


def nothing_after_the_end(facts: Facts, verdict: Verdict) -> None:
    """I16: what has ended does not begin again, and nothing is tried more often than it may be.

    A parcel may still be leased whose run was stopped: who leases it finds out, and does nothing.
    """
    for run, turns in facts.turns.items():
        final = [turn.n for turn in turns if turn.fact["after"] in FINAL]
        plan = facts.plans.get(turns[0].fact["job"] and UUID(turns[0].fact["job"]))
        if final:
            verdict.saw("I16")
            begun = {one.fence for one in facts.executed.get(run, [])}
            late = [one for one in facts.leases[run] if one.n > final[0]]
            late = [one for one in late if one.fact["fence"] in begun]
            if late:
                verdict.broken(
                    "I16", f"run {run} had ended, was leased at {late[0].at.time()} and executed"
                )
        retries = sum(turn.fact["after"] == RETRY_WAIT for turn in turns)
        if plan is not None and retries >= plan.attempts:
            verdict.broken("I16", f"run {run} was to be tried {plan.attempts} times, had {retries}")


def refused_with_reason(facts: Facts, verdict: Verdict) -> None:
    """Who pauses or resumes is never told that something exists already."""
    for one in facts.history.asked:
        verdict.saw("answers")
        if one.refused.startswith(("AlreadyExists", "Bug", "TooExpensive")):
            verdict.broken("answers", f"{one.verb} of {one.job}: {one.refused}")


def nothing_falls_over(facts: Facts, verdict: Verdict) -> None:
    """No role ends by an error of its own."""
    verdict.saw("roles")
    for trouble in facts.history.troubles:
        verdict.broken("roles", f"{trouble.host}: {'; '.join(trouble.causes)}"[:300])


def legal(facts: Facts, verdict: Verdict) -> None:
    """I25: every change of state is one the table knows; what was leased is never taken back."""
    # Times say what came first, unless some of them came twice; the numbers of changes always do.
    relived = any(by < 0 for _, by in facts.history.steps)
    for run, turns in facts.turns.items():
        for turn in turns:
            fact = turn.fact
            verdict.saw("I25")
            if fact["op"] == "delete":
                # A gate may have leased and skipped one without its beginning.
                done = [] if relived else facts.executed.get(run, [])
                begun = any(one.at <= turn.at for one in done)
                leased = fact["before"] == 0 and any(one.n < turn.n for one in facts.leases[run])
                if fact["before"] not in {0, SKIPPED} or leased or begun:
                    how = "after it was leased" if leased else "when nobody may"
                    verdict.broken("I25", f"run {run} in state {fact['before']} was deleted {how}")
            elif fact["before"] != fact["after"] and (fact["before"], fact["after"]) not in EDGES:
                verdict.broken("I25", f"run {run} went from {fact['before']} to {fact['after']}")


CHECKS: list[Check] = [
    acknowledged_survives,
    idempotent,
    every_fire_once,
    never_early,
    advanced_together,
    tokens_rise,
    executed_once_per_fence,
    stale_refused,
    everything_ends,
    leased_before_executed,
    nothing_after_the_end,
    refused_with_reason,
    nothing_falls_over,
    legal,
    *IN_TIME,
]
