"""Checks about time and about who may be at work at once: I5, I12, I13, I18, I19."""

from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from simulation.facts import Check, Facts, Verdict
from simulation.history import Asked
from simulation.oracle import SECOND

SCHEDULE = 0
START_SECONDS = 6.0
"""After healing a fire is leased so soon: a pass of planner and publisher, and a poll."""
FAR_SECONDS = 30.0
"""The same for a coordinator whose every request takes long: it does less, never nothing."""
PRESENCE_SECONDS = 6.0
"""So long a dead node still counts as one of those who share the shards."""


def in_time(facts: Facts, verdict: Verdict) -> None:
    """I5, I13: in a healthy world every fire starts soon after it is due, also after a takeover."""
    plan, history = facts.history.plan, facts.history
    far = plan.profile == "far"
    begin = facts.healed + timedelta(seconds=plan.ttl + PRESENCE_SECONDS + 10.0)
    patience = timedelta(seconds=FAR_SECONDS if far else START_SECONDS + 4 * plan.rtt["app"])
    end = facts.ended - patience - 3 * SECOND
    for run, row in history.runs.items():
        job = facts.plans.get(row["job_id"])
        if job is None or job.overlap != "allow" or row["trigger"] != SCHEDULE:
            continue
        if not begin <= row["due_at"] <= end or row["state"] in {6, 7, 9}:
            continue
        allowed = patience
        if history.probed is not None:
            killed = history.probed[0]
            takeover = timedelta(seconds=max(plan.ttl, PRESENCE_SECONDS) + START_SECONDS)
            if killed - SECOND <= row["due_at"] <= killed + takeover:
                allowed = patience + takeover
        leases = facts.leases[run]
        verdict.saw("I13")
        late = (leases[0].at if leases else facts.ended) - row["due_at"]
        if late > allowed:
            said = "was leased" if leases else "is not leased"
            verdict.broken("I13", f"{job.name}: {row['due_at'].time()} {said} {late} later")


def taken_over(facts: Facts, verdict: Verdict) -> None:
    """I12: what a dead coordinator held is somebody's within a lease and two seconds."""
    if facts.history.probed is None:
        return
    killed, held = facts.history.probed
    plan = facts.history.plan
    bound = timedelta(seconds=max(plan.ttl, PRESENCE_SECONDS) + 2.5)
    for shard, epoch in held.items():
        verdict.saw("I12")
        grants = [
            one.at
            for one in facts.shards[shard]
            if one.fact["epoch"] > epoch and one.fact["owner"] is not None
        ]
        took = (min(grants) if grants else facts.ended) - killed
        if took > bound:
            verdict.broken("I12", f"shard {shard} was taken over after {took}, bound {bound}")


def one_at_a_time(facts: Facts, verdict: Verdict) -> None:
    """I18: where fires must not overlap, no two attempts whose ends were accepted overlap.

    An accepted end shows that its lease was good all the time; what somebody does whose lease is
    gone is a repetition, not an overlap.
    """
    if _stepped(facts):
        return
    for job, plan in facts.plans.items():
        if plan.overlap == "allow":
            continue
        spans = sorted(
            span
            for run, row in facts.history.runs.items()
            if row["job_id"] == job and row["trigger"] == SCHEDULE and row["overlap"] != 0
            for span in _accepted(facts, run)
        )
        verdict.saw("I18", len(spans))
        for (_, end, one), (begin, _, other) in pairwise(spans):
            if begin < end and one != other:
                verdict.broken(
                    "I18",
                    f"{plan.name} ({plan.overlap}): run {other} began {begin.time()}, {one} had"
                    f" until {end.time()}",
                )


def _accepted(facts: Facts, run: UUID) -> list[tuple[datetime, datetime, UUID]]:
    """When the attempts of a run began and ended, those whose end was accepted."""
    ends = {
        turn.fact["fence"]: turn.at
        for turn in facts.turns[run]
        if turn.fact["op"] == "update" and turn.fact["after"] in {3, 4, 5}
    }
    return [
        (done.at, min(done.ended, ends[done.fence]), run)
        for done in facts.executed.get(run, [])
        if done.fence in ends and done.ended is not None
    ]


def pause_bites(facts: Facts, verdict: Verdict) -> None:
    """I19: no fire inside a pause runs, unless resuming asked for it."""
    if _stepped(facts):
        return
    for job, plan in facts.plans.items():
        for pause, resume in _pauses(facts, job):
            if pause.ended is None or resume.detail != "skip":
                continue
            for run, row in facts.history.runs.items():
                if row["job_id"] != job or row["trigger"] != SCHEDULE or row["fire_at"] is None:
                    continue
                if pause.ended < row["fire_at"] < resume.began:
                    verdict.saw("I19")
                    if facts.executed.get(run):
                        verdict.broken(
                            "I19", f"{plan.name}: {row['fire_at'].time()} lay in a pause and ran"
                        )


def _pauses(facts: Facts, job: UUID) -> list[tuple[Asked, Asked]]:
    acts = [
        one
        for one in facts.history.asked
        if one.job == job and one.verb in {"pause", "resume"} and one.ok
    ]
    return [
        (first, second)
        for first, second in pairwise(acts)
        if first.verb == "pause" and second.verb == "resume"
    ]


def _stepped(facts: Facts) -> bool:
    """Whether the clock of the database was set back: then the same time comes twice."""
    return any(by < 0 for _, by in facts.history.steps)


def cancel_bites(facts: Facts, verdict: Verdict) -> None:
    """I19: after a cancellation was acknowledged no new attempt is leased."""
    for one in facts.asked("cancel"):
        if not one.ok or one.ended is None or not one.detail or facts.history.steps:
            continue
        verdict.saw("I19")
        after = [lease for lease in facts.leases[UUID(one.detail)] if lease.at > one.ended]
        done = [seen for seen in facts.executed.get(UUID(one.detail), []) if seen.at > one.ended]
        if after and done:
            verdict.broken("I19", f"run {one.detail} was cancelled and leased again")


IN_TIME: list[Check] = [in_time, taken_over, one_at_a_time, pause_bites, cancel_bites]
