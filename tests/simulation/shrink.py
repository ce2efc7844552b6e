"""From a plan that fails to a smaller one that still does.

Whole classes of trouble are taken out one at a time; then incidents, acts and jobs one by one; then
hosts and time are halved. What still breaks one of the same invariants is kept.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from simulation.one import in_thread, simulate
from simulation.plan import Plan
from simulation.server import Server

TRIES_MAX = 150


def shrunk(plan: Plan, broken: AbstractSet[str], dsn: str) -> tuple[Plan, int]:
    """The smallest plan that was found, and after how many tries."""

    def work() -> tuple[Plan, int]:
        server = Server(dsn)
        try:
            return _shrink(plan, broken, server)
        finally:
            server.close()

    return in_thread(work)


def _shrink(plan: Plan, broken: AbstractSet[str], server: Server) -> tuple[Plan, int]:
    tries = 0
    again = True
    while again and tries < TRIES_MAX:
        again = False
        for smaller in candidates(plan):
            tries += 1
            found = {one.invariant for one in simulate(smaller, server).violations}
            if found & broken:
                plan, again = smaller, True
                break
            if tries >= TRIES_MAX:
                break
    return plan, tries


def candidates(plan: Plan) -> Iterator[Plan]:  # noqa: C901, PLR0912 -- a list of ways
    """Plans with less in them, the boldest first."""
    if plan.rates:
        yield replace(plan, rates={})
    for name in plan.rates:
        yield replace(plan, rates={one: rate for one, rate in plan.rates.items() if one != name})
    for field in ("incidents", "acts", "jobs"):
        values: tuple[Any, ...] = getattr(plan, field)
        least = 1 if field == "jobs" else 0
        if field != "jobs" and values:
            yield _with(plan, field, ())
        if len(values) > least and field != "jobs":
            for place in range(len(values)):
                yield _with(plan, field, values[:place] + values[place + 1 :])
    if len(plan.jobs) > 1:
        for place in range(len(plan.jobs)):
            yield without_job(plan, place)
    for field in ("coordinators", "workers", "apps", "tasks", "apis"):
        if getattr(plan, field) > 1:
            yield replace(plan, **{field: getattr(plan, field) - 1})
    if plan.spread:
        yield replace(plan, spread=False)
    if plan.probe:
        yield replace(plan, probe=False)
    if plan.shards > 1:
        yield replace(plan, shards=max(1, plan.shards // 2))
    if any(plan.skews):
        yield replace(plan, skews=(0.0,))
    if plan.chaos > 10:
        yield replace(plan, chaos=plan.chaos / 2)


def _with(plan: Plan, field: str, value: Any) -> Plan:
    changes: dict[str, Any] = {field: value}
    return replace(plan, **changes)


def without_job(plan: Plan, place: int) -> Plan:
    """The same plan with one job less, and without what is asked of it."""
    jobs = plan.jobs[:place] + plan.jobs[place + 1 :]
    acts = tuple(
        replace(act, job=act.job - (act.job > place)) for act in plan.acts if act.job != place
    )
    return replace(plan, jobs=jobs, acts=acts)
