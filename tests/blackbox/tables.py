"""What the service itself says in the end, read once, straight from its tables."""

import asyncio
import json
from collections import defaultdict
from contextlib import suppress
from typing import Any
from uuid import UUID

from blackbox.api import Unclear
from blackbox.cluster import Cluster
from blackbox.evidence import read_ledger
from blackbox.facts import Decision, History, Row, Seen, id_of

STATES = {
    0: "scheduled",
    1: "queued",
    3: "retry_wait",
    4: "succeeded",
    5: "dead",
    6: "cancelled",
    7: "skipped",
    8: "expired",
    9: "missed",
}
STEP_SLACK_SECONDS = 1.0
LEASED_BEFORE_SECONDS = 75.0
"""A run may have been leased so long before it was seen: by a process that was frozen meanwhile.
What was due by the clock of that moment was not early, even if the clock was set back since."""


async def read_rows(cluster: Cluster, history: History) -> None:
    """Runs, decisions and workflow runs."""
    rows = await cluster.fetch(
        "SELECT id, job_id, fire_at, due_at, state, fence, finished_at, result, workflow_run_id"
        "  FROM betimes.runs"
    )
    members: dict[UUID, list[UUID]] = defaultdict(list)
    for row in rows:
        if row["workflow_run_id"] is not None:
            members[row["workflow_run_id"]].append(row["id"])
        history.rows.append(
            Row(
                row["id"],
                row["job_id"],
                _seconds(row["fire_at"]),
                row["due_at"].timestamp(),
                STATES[row["state"]],
                row["fence"],
                _seconds(row["finished_at"]),
                result_fence(row["result"]),
            )
        )
    for row in await cluster.fetch(
        "SELECT job_id, fire_at, coalesce(until_at, fire_at) AS until_at, fires, code"
        "  FROM betimes.decisions"
    ):
        history.decisions.append(
            Decision(
                row["job_id"],
                row["fire_at"].timestamp(),
                row["until_at"].timestamp(),
                row["fires"],
                row["code"],
            )
        )
    for run in history.workflow_runs:
        state = await _workflow_state(cluster, run)
        history.workflow_rows[run] = (state, members[run])


async def _workflow_state(cluster: Cluster, run: UUID) -> str:
    """As the service shows it; asked again while it is busy."""
    for _ in range(20):
        with suppress(Unclear):
            answer = await cluster.apis()[0].ask("GET", f"/v1/workflow-runs/{_text('wfr', run)}")
            if answer.ok:
                return str(answer.body["state"])
            if answer.status == 404:
                return "gone"
        await asyncio.sleep(0.5)
    return "unanswered"


def result_fence(result: bytes | None) -> int | None:
    """The fence that the target or the task said it was called under, from the stored result."""
    if not result:
        return None
    try:
        said: Any = json.loads(result)
    except ValueError:
        return None
    return _find_fence(said)


def _find_fence(said: Any) -> int | None:
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except ValueError:
            return None
    if not isinstance(said, dict):
        return None
    if isinstance(said.get("fence"), int):
        return int(said["fence"])
    return next((found for inner in said.values() if (found := _find_fence(inner))), None)


def read_evidence(cluster: Cluster, history: History, steps: list[tuple[float, float]]) -> None:
    """What targets and tasks wrote."""
    for line in read_ledger(cluster.ledger):
        at = line["at"]
        history.seen.append(
            Seen(
                id_of(line["run"]),
                line["attempt"],
                line["fence"],
                at,
                at + _offset(steps, at),
                line["mode"],
                line["by"],
            )
        )


def _offset(steps: list[tuple[float, float]], at: float) -> float:
    """The largest offset that the database's clock can have had when the run was leased."""
    current, largest = 0.0, 0.0
    for stepped, offset in steps:
        if stepped < at - LEASED_BEFORE_SECONDS:
            current = offset
        elif stepped < at + STEP_SLACK_SECONDS:
            largest = max(largest, current, offset)
            current = offset
    return max(largest, current)


def _seconds(stamp: Any) -> float | None:
    return None if stamp is None else float(stamp.timestamp())


def _text(prefix: str, number: UUID) -> str:
    symbols = "0123456789abcdefghjkmnpqrstvwxyz"
    digits = "".join(symbols[number.int >> shift & 31] for shift in range(125, -1, -5))
    return f"{prefix}_{digits}"
