"""Every reason code of an explanation: what it means, and what would help.

The texts are templates over the evidence; `action` names the call that would fix it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Told:
    """A code in words: `otherwise` is said where the evidence has a gap, and needs none itself."""

    summary: str
    fix: str = ""
    action: str = ""
    otherwise: str = ""


CODES: Mapping[str, Told] = MappingProxyType(
    {
        # time
        "NOT_DUE": Told(
            "It is not due before {due_at}.", otherwise="The schedule has no fire then."
        ),
        "BEFORE_START": Told(
            "The schedule begins at {start_at}.",
            "Set an earlier start_at.",
            "PATCH /v1/jobs/{job}",
            "The schedule begins later.",
        ),
        "AFTER_END": Told(
            "The schedule has ended.",
            "Give the job a schedule with a fire in the future.",
            "PATCH /v1/jobs/{job}",
        ),
        "MAX_FIRES_REACHED": Told(
            "It has fired {max_fires} times, which is all it was to.",
            "Raise max_fires.",
            "PATCH /v1/jobs/{job}",
            "It has fired as often as it was to.",
        ),
        "DST_GAP_SKIPPED": Told(
            "{local} did not exist in {timezone}, and the job's DST policy is 'skip'.",
            "Use dst.gap=next to run at the first instant after the gap.",
            "PATCH /v1/jobs/{job}",
            "Its local time did not exist that day, and the job's DST policy is 'skip'.",
        ),
        "DST_GAP_SHIFTED": Told(
            "{local} did not exist there; it runs at the first instant after the gap.",
            otherwise="Its local time did not exist that day; it runs right after the gap.",
        ),
        "DST_OVERLAP_MERGED": Told(
            "{local} came twice that day, and the job runs in one of the passes only.",
            "Use dst.overlap=both to run in both.",
            "PATCH /v1/jobs/{job}",
            "Its local time came twice that day, and the job runs in one of the passes only.",
        ),
        "CALENDAR_EXCLUDED": Told(
            "{local} is excluded by the calendars of the job ({calendars}).",
            "Change the calendar, or run it by hand.",
            "POST /v1/jobs/{job}/run",
            "A calendar of the job excludes it.",
        ),
        "JITTER_DELAY": Told(
            "Jitter or a window moved its start from {fire_time} to {due_at}.",
            otherwise="Jitter or a window moved its start.",
        ),
        "SCHEDULE_NEVER_FIRES": Told(
            "The schedule has no fire.", "Change the schedule.", "PATCH /v1/jobs/{job}"
        ),
        "MANUAL_ONLY": Told(
            "It fires only when somebody runs it.", "Run it by hand.", "POST /v1/jobs/{job}/run"
        ),
        "FOLLOWS_ITS_RUN": Told("Its next fire follows the end of the run that is under way."),
        # catch-up
        "CATCHUP_NONE": Told(
            "It was missed, and the job does not catch up.",
            "Use catchup.policy=latest or all, or backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        "CATCHUP_WINDOW_EXCEEDED": Told(
            "It was missed for longer than the catch-up window.",
            "Backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        "CATCHUP_COALESCED": Told(
            "It was missed; only the latest missed fire runs.",
            "Use catchup.policy=all, or backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        "CATCHUP_MAX_REACHED": Told(
            "More fires were missed than catchup.max.",
            "Backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        "CATCHUP_AWAITS_APPROVAL": Told(
            "So many fires were missed that somebody must approve running them ({episode}).",
            "Approve or drop what was missed.",
            "POST /v1/catchups/{episode}/approve",
            "So many fires were missed that somebody must approve running them.",
        ),
        "CATCHUP_DROPPED": Told(
            "It was missed, and somebody dropped what was missed.",
            "Backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        "CATCHUP_PACED": Told(
            "It was missed and runs at {due_at}, at a pace that leaves room for what is on time.",
            otherwise="It was missed and runs at a pace that leaves room for what is on time.",
        ),
        "CREATED_AFTER_FIRE": Told(
            "The job was created after this time.",
            "Backfill the span.",
            "POST /v1/jobs/{job}/backfill",
        ),
        # state
        "JOB_PAUSED": Told(
            "The job is paused: {reason}.",
            "Resume the job.",
            "POST /v1/jobs/{job}/resume",
            "The job is paused.",
        ),
        "JOB_AUTO_PAUSED": Told(
            "A rule has paused the job after {failures} failures in a row.",
            "Look at its last failures, then resume it.",
            "POST /v1/jobs/{job}/resume",
            "A rule has paused the job.",
        ),
        "JOB_CANCELLED": Told(
            "The job was cancelled: {reason}.",
            "Create a new job; a cancelled one stays so.",
            "POST /v1/jobs",
            "The job was cancelled.",
        ),
        "JOB_DELETED": Told("The job was deleted."),
        "SCHEDULE_UNREADABLE": Told(
            "The schedule can no longer be read: {detail}.",
            "Give the job another schedule, then resume it.",
            "PATCH /v1/jobs/{job}",
            "The schedule can no longer be read.",
        ),
        "TENANT_SUSPENDED": Told(
            "The tenant is suspended: {reason}.",
            "Ask an administrator.",
            otherwise="The tenant is suspended.",
        ),
        "CLUSTER_PAUSED": Told("The whole cluster is paused.", "Ask an administrator."),
        "QUEUE_PAUSED": Told(
            "The queue {queue} is paused.",
            "Resume the queue.",
            "POST /v1/queues/{queue}/resume",
            "Its queue is paused.",
        ),
        # workflows
        "WORKFLOW_RUNNING": Told(
            "It has started a workflow run and waits for its end.",
            "Look at the workflow run.",
            "GET /v1/workflow-runs",
        ),
        "WORKFLOW_STOPPED": Told(
            "Its workflow run is being stopped: another node failed, or somebody cancelled it.",
            "Retry the workflow run.",
            "POST /v1/workflow-runs/{workflow_run}/retry",
        ),
        "WORKFLOW_CANCELLED": Told("The workflow run that it had started was cancelled."),
        "WORKFLOW_TIMED_OUT": Told("The workflow run took longer than its timeout."),
        "GATE_TIMED_OUT": Told("Nobody opened the gate of the node in time."),
        "CONDITION_NOT_MET": Told("The condition of the node (when) did not hold."),
        "NODE_FAILED": Told("A node of the workflow run failed."),
        "ITEMS_FAILED": Told("Some items of the mapped node failed."),
        "RUN_GONE": Told(
            "The row of the run that did the work of the node is gone; nobody can say how it ended."
        ),
        "NOT_A_LIST": Told("What the node maps over is no list."),
        "TOO_MANY_ITEMS": Told("What the node maps over has too many items."),
        "REFERENCE_MISSING": Told("A reference in the payload of the node leads to nothing."),
        "OUTPUT_TOO_LARGE": Told(
            "An output is too large to be a part of a payload.",
            "Let it be the whole payload of the node.",
        ),
        "OUTPUT_UNREADABLE": Told("An output that lies apart could not be read."),
        "SKIPPED_BY_USER": Told(
            "Somebody skipped it.", "Run it by hand.", "POST /v1/jobs/{job}/run"
        ),
        "RUN_CANCELLED": Told(
            "Somebody cancelled it: {reason}.",
            "Retry it.",
            "POST /v1/runs/{run}/retry",
            "Somebody cancelled it.",
        ),
        "QUEUE_PURGED": Told(
            "Somebody emptied its queue.", "Retry it.", "POST /v1/runs/{run}/retry"
        ),
        "RETRIED_BY_USER": Told("Somebody asked for one more try."),
        # policy
        "OVERLAP_CANCELLED": Told(
            "A later fire of its job took its place.",
            "Use another overlap policy, or make the runs shorter than the period.",
            "PATCH /v1/jobs/{job}",
        ),
        "OVERLAP_SKIPPED": Told(
            "An earlier run of the job had not ended ({blocked_by}), and it skips then.",
            "Ask why that run had not ended; if it only took its time, use overlap=buffer_one or "
            "allow, or make the runs shorter than the period.",
            "PATCH /v1/jobs/{job}",
            "An earlier run of the job had not ended, and it skips then.",
        ),
        "OVERLAP_LATELY": Told(
            "{skipped} of its last {looked_at} fires were skipped, because an earlier run of the "
            "job had not ended.",
            "Ask why that run had not ended; if it only took its time, use overlap=buffer_one or "
            "allow, or make the runs shorter than the period.",
            "PATCH /v1/jobs/{job}",
            "Some of its last fires were skipped, because an earlier run of the job had not ended.",
        ),
        "OVERLAP_BUFFERED": Told(
            "An earlier run of its job has not ended ({holders}).",
            "Wait for it, or cancel it.",
            otherwise="Earlier runs of its job go first.",
        ),
        "DEDUPED": Told("Another one with the same dedupe key stands for it."),
        "START_DEADLINE_PASSED": Told(
            "It could not start before its deadline.",
            "Retry it, or give it a longer start_deadline.",
            "POST /v1/runs/{run}/retry",
        ),
        "CONCURRENCY_KEY_FULL": Told(
            "The concurrency key {key} has {in_flight} of {limit} in flight.",
            "Wait for one to end, or raise the limit.",
            "PATCH /v1/jobs/{job}",
            "Its concurrency key had no place free.",
        ),
        "RATE_LIMITED": Told(
            "The rate of the {whose}, {limit} in {per_seconds} s, is used up until {free_at}.",
            "Wait, or raise the rate.",
            otherwise="A rate it stands under is used up.",
        ),
        "QUOTA_EXCEEDED": Told(
            "The {whose} has {in_flight} of {limit} in flight.",
            "Wait, or raise the limit.",
            otherwise="As many are in flight as may be.",
        ),
        "FAIR_SHARE_WAIT": Told("Other fairness keys have their turns in between."),
        "LOWER_PRIORITY": Told(
            "{ahead} with a higher priority go first.",
            otherwise="Others with a higher priority go first.",
        ),
        # capacity
        "NO_WORKER_FOR_QUEUE": Told(
            "No worker serves the queue {queue}.",
            "Start a worker that serves it.",
            "betimes worker run -q {queue}",
            "No worker serves its queue.",
        ),
        "NO_WORKER_FOR_HANDLER": Told(
            "No worker of the queue {queue} has the handler {handler}.",
            "Start a worker that has it.",
            otherwise="No worker of its queue has its handler.",
        ),
        "WORKERS_BUSY": Told(
            "All {slots} places of the workers are taken.",
            "Add places or workers.",
            otherwise="All places of the workers are taken.",
        ),
        "OFFERED": Told(
            "Nothing stands in its way: {free} of {slots} places of the workers were free when "
            "they last reported.",
            otherwise="Nothing stands in its way.",
        ),
        "WORKERS_DRAINING": Told(
            "The workers of the queue {queue} are shutting down.",
            "Start others.",
            otherwise="The workers of its queue are shutting down.",
        ),
        # attempt
        "CIRCUIT_OPEN": Told(
            "Its target fails; it is tried again when a probe gets through.",
            "Look at the target.",
            "GET /v1/targets",
        ),
        "ORIGIN_BUSY": Told("Its target has as many requests under way as it can bear."),
        "ORIGIN_RATE": Told("Its target is asked for no more than it can bear at present."),
        "RETRY_BUDGET": Told("Too many others are tried again at its target."),
        "RETRY_BACKOFF": Told(
            "Attempt {attempt} failed; the next one comes at {due_at}.",
            otherwise="An attempt failed; the next one comes later.",
        ),
        "SNOOZED": Told(
            "It asked to be tried again at {due_at}.",
            otherwise="It asked to be tried again later.",
        ),
        "RELEASED": Told("Its worker gave it back; no attempt was counted."),
        "LEASE_EXPIRED": Told("Its worker was not heard of any more; it goes to another one."),
        "LEASED": Told(
            "A worker has it until {lease_until} or its next heartbeat.",
            otherwise="A worker has it.",
        ),
        "LEASE_EXPIRED_WAIT": Told(
            "Its worker has not been heard since {lease_until}; it goes to another one.",
            otherwise="Its worker has not been heard of; it goes to another one.",
        ),
        "RETRIES_EXHAUSTED": Told(
            "It failed as often as it may, last with {error}.",
            "Fix the cause and redrive it.",
            "POST /v1/dead-letters/{run}/redrive",
            "It failed as often as it may.",
        ),
        "PERMANENT_ERROR": Told(
            "It failed in a way that a retry cannot mend: {error}.",
            "Fix the cause and redrive it.",
            "POST /v1/dead-letters/{run}/redrive",
            "It failed in a way that a retry cannot mend.",
        ),
        "TIMED_OUT": Told(
            "It took longer than its timeout.", "Give it more time.", "PATCH /v1/jobs/{job}"
        ),
        # system
        "SHARD_UNOWNED": Told("No coordinator owns its part of the work.", "Start a coordinator."),
        "SCHEDULER_LAGGING": Told(
            "The coordinator is behind: it has published up to {published_through}.",
            otherwise="The coordinator is behind: it has published nothing yet.",
        ),
        "PURGED_BY_RETENTION": Told("It is so long ago that nothing is kept about it."),
    }
)


def summary_of(code: str, evidence: Mapping[str, Any]) -> str:
    """A sentence without gaps; a code that nobody knows is its own."""
    told = CODES.get(code)
    if told is None:
        return code
    return _filled(told.summary, evidence) or told.otherwise


def fix_of(code: str, evidence: Mapping[str, Any]) -> tuple[str, str]:
    """What would help, and the call that does it; both may be empty."""
    told = CODES.get(code)
    if told is None:
        return "", ""
    return told.fix, _filled(told.action, evidence) or ""


def _filled(template: str, evidence: Mapping[str, Any]) -> str | None:
    """The template over the evidence; None where that lacks something."""
    words: dict[str, str] = {}
    for name in _fields(template):
        value = evidence.get(name)
        if value is None or value in ("", [], ()):
            return None
        words[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return template.format_map(words)


@cache
def _fields(template: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)
