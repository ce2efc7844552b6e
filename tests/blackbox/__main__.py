"""`python -m blackbox`: load, faults, healing, drain, judgement; the last line counts."""

import argparse
import asyncio
import random
import signal
import sys
import time
from contextlib import suppress

from blackbox.calendar import play_calendar
from blackbox.cluster import Cluster, a_cluster
from blackbox.facts import History
from blackbox.faults import TAKEOVER_SECONDS, Faults
from blackbox.load import Load
from blackbox.oracle import MUST_BE_ZERO, Judgement, judge
from blackbox.postgres import AWAY
from blackbox.tables import read_evidence, read_rows

SETTLE_SECONDS = 400.0
SAY_EVERY_SECONDS = 30.0
MEASURING_SECONDS = 0.3
"""Looking for the new owner takes this long."""


def main() -> int:
    """Play the storm, then the calendar; 0 when nothing is wrong and everything was met."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped
    storm = asyncio.run(_storm(options))
    calendar = asyncio.run(play_calendar(say)) if options.calendar else []
    for line in calendar:
        say(f"  calendar: {line}")
    faults, found, history, wrong = storm
    wrong += [f"calendar: {line}" for line in calendar]
    if len(faults.done) < options.least_faults:
        wrong.append(f"expected at least {options.least_faults} faults, got {len(faults.done)}")
    if found.occurrences < options.least_occurrences:
        wrong.append(
            f"expected at least {options.least_occurrences} occurrences, got {found.occurrences}"
        )
    _report(faults, found, history)
    for line in wrong:
        say(f"WRONG {line}")
    zero = ("lost", "enqueued_twice", "same_fence_twice", "early", "unknown")
    counts = ", ".join(f"{found.counts[what]} {what.replace('_', ' ')}" for what in zero)
    verdict = "nothing wrong" if not wrong else f"{len(wrong)} wrong"
    say(f"chaos: {len(faults.done)} faults, {found.occurrences} occurrences, {counts}; {verdict}")
    return 1 if wrong else 0


def say(line: str) -> None:
    """Tell whoever watches."""
    sys.stderr.write(line + "\n")


async def _storm(options: argparse.Namespace) -> tuple[Faults, Judgement, History, list[str]]:
    dice = random.Random(options.seed)
    async with a_cluster(keep_files=options.keep) as cluster:
        load = Load(cluster, dice)
        faults = Faults(cluster, load, dice, steps_clock=options.steps)
        say(
            f"started: {len(cluster.processes)} processes, seed {options.seed}; log: {cluster.root}"
        )
        await load.create_jobs(options.jobs)
        await load.create_workflow()
        history = History(until=0.0)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_watch(cluster, load, faults, history))
            clients = load.run(group)
            await faults.run(options.seconds)
            _heal(cluster, faults)
            for client in clients:
                client.cancel()
            await asyncio.wait(clients)
            history.until = load.now()
            say(f"healed after {len(faults.done)} faults; waiting for everything to end")
            # What was asked for before the clock was set back is due when that time comes again.
            quiet = await _until_quiet(cluster, max(history.until, load.relived_until))
            watching.cancel()
        _collect(load, faults, history)
        read_evidence(cluster, history, faults.steps)
        await read_rows(cluster, history)
        found = judge(history)
        wrong = _wrong(cluster, load, faults, found)
        if not quiet:
            wrong.append(f"not everything had ended after {SETTLE_SECONDS:.0f} s")
        if wrong and not options.keep:
            _say_logs(cluster)
        return faults, found, history, wrong


def _collect(load: Load, faults: Faults, history: History) -> None:
    history.jobs = load.jobs
    history.singles = load.singles
    history.cancelled = load.cancelled
    history.keys = load.keys
    history.workflow_runs = load.workflow_runs
    history.unanswered = load.unanswered
    history.stepped = bool(faults.steps)


def _heal(cluster: Cluster, faults: Faults) -> None:
    for process in cluster.processes.values():
        process.proxy.heal()
    cluster.mode.write_text("ok")
    if cluster.postgres.offset:
        faults.load.relived_until = max(faults.load.relived_until, faults.load.now())
        cluster.postgres.step(0.0)
        faults.load.steps += 1
        faults.steps.append((time.time(), 0.0))


async def _watch(cluster: Cluster, load: Load, faults: Faults, history: History) -> None:
    """Look at the marks of the shards, and say now and then how it goes."""
    said, began = time.monotonic(), time.monotonic()
    while True:
        await asyncio.sleep(0.5)
        with suppress(*AWAY):
            rows = await cluster.fetch("SELECT shard, epoch, published_through FROM betimes.shards")
            for row in rows:
                through = row["published_through"]
                history.cursors.append(
                    (row["shard"], row["epoch"], None if through is None else through.timestamp())
                )
        if time.monotonic() - said >= SAY_EVERY_SECONDS:
            said = time.monotonic()
            lines = cluster.ledger.read_bytes().count(b"\n")
            say(
                f"  {said - began:5.0f} s: {len(faults.done)} faults, {lines} deliveries,"
                f" {load.tries} requests ({load.unclear} unclear, {load.busy_answers} put off)"
            )


async def _until_quiet(cluster: Cluster, until: float) -> bool:
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        with suppress(*AWAY):
            rows = await cluster.fetch(
                "SELECT (SELECT count(*) FROM betimes.runs"
                "         WHERE state < 4 AND due_at <= to_timestamp($1))"
                "     + (SELECT count(*) FROM betimes.gaps WHERE from_at <= to_timestamp($1))"
                "     + (SELECT count(*) FROM betimes.shards"
                "         WHERE published_through < to_timestamp($1)) AS left",
                until,
            )
            if rows[0]["left"] == 0:
                return True
        await asyncio.sleep(1.0)
    return False


def _wrong(cluster: Cluster, load: Load, faults: Faults, found: Judgement) -> list[str]:
    wrong = [
        f"{what.replace('_', ' ')}: {found.counts[what]}; " + " | ".join(found.examples[what][:4])
        for what in MUST_BE_ZERO
        if found.counts[what]
    ]
    late = [took for took in faults.takeovers if took > TAKEOVER_SECONDS + MEASURING_SECONDS]
    if late:
        wrong.append(f"takeovers took longer than {TAKEOVER_SECONDS} s: {late}")
    crashed = [event for event in cluster.events() if event.get("event") == "role.crashed"]
    if crashed:
        wrong.append(f"{len(crashed)} roles crashed, such as {str(crashed[0])[:600]}")
    deaths = {one.name: one.deaths for one in cluster.processes.values() if one.deaths}
    if deaths:
        wrong.append(f"processes died by themselves: {deaths}")
    # A delay is counted from a clock that may just have been stepped; the caller is told.
    stepped = bool(faults.steps)
    refusals = [
        text
        for text in load.refusals
        if "/cancel" not in text and not (stepped and "time_in_past" in text)
    ]
    if refusals:
        wrong.append(f"{len(refusals)} requests were refused, such as {refusals[:3]}")
    return wrong


def _report(faults: Faults, found: Judgement, history: History) -> None:
    say("faults: " + ", ".join(f"{kind} {n}" for kind, n in sorted(faults.counts().items())))
    say(
        f"occurrences: {found.occurrences} expected = {found.became_runs} runs"
        f" + {sum(found.decided.values())} decided {dict(found.decided)}"
    )
    say(
        f"deliveries: {found.deliveries}, of {len({one.run for one in history.seen})} runs,"
        f" {found.redelivered} of them more than once (at least once)"
    )
    lateness = sorted(found.lateness)
    if lateness:
        marks = [lateness[int(len(lateness) * share)] for share in (0.5, 0.95, 0.99)]
        say("lateness: p50 {:.2f} s, p95 {:.2f} s, p99 {:.2f} s".format(*marks))
    if faults.takeovers:
        took = sorted(faults.takeovers)
        say(f"takeover: {len(took)} kills, p50 {took[len(took) // 2]:.1f} s, max {took[-1]:.1f} s")
    dead = sum(row.state == "dead" for row in history.rows)
    say(f"workflow runs: {len(history.workflow_runs)}; dead runs: {dead}")


def _say_logs(cluster: Cluster) -> None:
    for process in cluster.processes.values():
        say(f"--- {process.name}\n{process.log.read_text(errors='replace')[-1000:]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m blackbox", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="how long things are broken")
    parser.add_argument(
        "--jobs", type=int, default=560, help="recurring jobs, about 0.2 fires/s each"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the choices")
    parser.add_argument("--least-faults", type=int, default=0, help="fewer is a failure")
    parser.add_argument("--least-occurrences", type=int, default=0, help="fewer is a failure")
    parser.add_argument("--no-calendar", dest="calendar", action="store_false",
                        help="leave out midnight and retention")  # fmt: skip
    parser.add_argument(
        "--no-steps", dest="steps", action="store_false", help="leave the database's clock alone"
    )
    parser.add_argument("--keep", action="store_true", help="keep the files of the run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
