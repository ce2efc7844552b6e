"""One chaos run: load, faults, healing, drain, judgement."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from betimes.testing.checker import Finding, Verdict, judge, table
from betimes.testing.history import Bounds, History
from chaos.evidence import Snapshots, collect, until_quiet
from chaos.load import Client, a_client
from chaos.nemesis import Nemesis
from chaos.stage import TAKEOVER_SECONDS, TTL, Stage

LATENESS_SECONDS = 2 * TTL + 6.0
"""Lease, reaping, claim, and the patience that two shared cores need."""

Plot = Callable[[Stage, Nemesis, Client], Awaitable[None]]


async def play(
    stage: Stage, plot: Plot, *, periods: tuple[int, ...], lateness: float = LATENESS_SECONDS
) -> History:
    """Run a plot under load, let everything heal and end, collect what was recorded."""
    async with a_client(stage) as client:
        await client.create_jobs(*periods)
        watching = Snapshots(stage, client)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(client.keep_asking(600))
            meddling = group.create_task(client.keep_meddling())
            looking = group.create_task(watching.run())
            await plot(stage, Nemesis(stage), client)
            await stage.until_balanced()
            await asyncio.sleep(2)
            asking.cancel()
            meddling.cancel()
            await client.resume()
            until = time.time()
            await until_quiet(stage, until)
            looking.cancel()
        bounds = Bounds(lateness=lateness, takeover=TAKEOVER_SECONDS, until=until)
        return await collect(stage, client, watching.plans, until=until, bounds=bounds)


def assert_kept(stage: Stage, history: History, *, unknown: frozenset[str]) -> dict[str, Finding]:
    """Nothing failed, and only these promises may have gone without evidence."""
    findings = judge(history)
    counts: dict[str, int] = {}
    for fault in stage.faults:
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
    report = f"faults {counts}\nruns {len(history.runs)}, starts {len(history.starts)}\n"
    report += table(findings)
    sys.stderr.write("\n" + report + "\n")
    repaired = [event for event in stage.events() if event.get("event") == "run.unpublished"]
    assert not repaired, f"a run fell between and was swept up: {repaired}"
    crashed = [event for event in stage.events() if event.get("duty") == "role"]
    assert not crashed, f"a role crashed: {crashed}"
    failed = [one.promise for one in findings.values() if one.verdict is Verdict.FAIL]
    assert not failed, f"{report}\n{stage.said()}"
    silent = {one.promise for one in findings.values() if one.verdict is Verdict.UNKNOWN}
    assert silent <= unknown, f"no evidence for {silent - unknown}\n{report}"
    return findings
