"""More than the API can do: how much it still gets done, and whether what is vital gets through.

Clients that ignore `Retry-After` create jobs over ever more connections: two, three and ten times a
comfortable number, and that number before and after each. Beside them somebody pauses and resumes
a job, cancels runs, completes them and sends heartbeats. Told are the jobs created, also as a share
of the comfortable step just before (a database grows slower as it fills), what became of what is
vital, the memory of the API, and how soon after the last load it did as much again as before.
"""

import argparse
import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.kit.api import Spent, a_job, a_key, a_worker, an_api, ask, load
from bench.kit.http_load import VITAL
from bench.kit.processes import resident_mb
from bench.kit.report import Report
from bench.kit.server import a_server
from betimes.api.service import Service
from betimes.app.run import run_to_end

ROOM, ROOM_QUICK = 100, 4
SHAPE, SHAPE_QUICK = (50, 100, 50, 150, 50, 500, 50), (2, 8)
SUBJECTS, SUBJECTS_QUICK = 1_000, 20
LEASES_PER_CALL = 100
AS_BEFORE = 0.9
"""The share of the comfortable step at which the API has recovered."""


def main(arguments: list[str]) -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="bench overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each step")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--room", type=int, default=ROOM, help="requests under way: api.busy_max")
    parser.add_argument("--quick", action="store_true")
    return run_to_end(measure(parser.parse_args(arguments)))


async def measure(options: argparse.Namespace) -> int:
    """Every step of the load, one after the other."""
    report = Report("overload")
    shape, options.subjects = SHAPE, SUBJECTS
    if options.quick:
        shape, options.subjects = SHAPE_QUICK, SUBJECTS_QUICK
        options.seconds, options.room = 1.0, ROOM_QUICK
    async with (
        a_server(options.shards) as server,
        an_api(server, busy_max=options.room) as (service, port),
    ):
        scene = Scene(service, port, await a_key(service), options)
        await scene.warm_up()
        comfort: dict[str, Any] = {}
        before_that: dict[str, Any] = {}
        for connections in shape:
            before = Spent.now()
            found = await scene.step(connections)
            costs = Spent.now().per(before, found["pressing"]["done"])
            tell(
                report, options, connections, found, comfort or found, others=costs["others_share"]
            )
            before_that, comfort = comfort, found if connections == shape[0] else comfort
        recovered = recovered_after(
            found["pressing"]["by_second"], (before_that or found)["pressing"]["per_second"]
        )
        report.tell("recovery", {"as_before": AS_BEFORE}, within_seconds=recovered)
    report.table()
    return 0


@dataclass(frozen=True, slots=True)
class Scene:
    """An API, and who asks what of it."""

    service: Service
    port: int
    key: str
    options: argparse.Namespace

    async def warm_up(self) -> None:
        """A second of what follows: connections, plans and caches are there."""
        await load(self.port, self.key, "jobs", connections=2, seconds=1.0)

    async def step(self, connections: int) -> dict[str, dict[str, Any]]:
        """The load over so many connections, with what is vital beside it."""
        with tempfile.TemporaryDirectory(prefix="betimes-bench-") as folder:
            subjects = await self._subjects(Path(folder))
            modes = ["pressing", *VITAL]
            found = await asyncio.gather(
                *(
                    load(
                        self.port,
                        self.key,
                        mode,
                        connections=connections if mode == "pressing" else 1,
                        seconds=self.options.seconds,
                        subject=str(subjects.get(mode, "")),
                    )
                    for mode in modes
                )
            )
        return dict(zip(modes, found, strict=True))

    async def _subjects(self, folder: Path) -> dict[str, Path]:
        """Files with what each vital request acts on: fresh runs, and leases that just began."""
        worker = await a_worker(self.service)
        lines = {
            "pause": [await a_job(self.service)],
            "heartbeat": [worker],
            "cancel": await self._runs(queue="later", delay="PT1H"),
            "complete": await self._leases(worker),
        }
        for name, some in lines.items():
            (folder / name).write_text("\n".join(some), encoding="ascii")
        return {name: folder / name for name in lines}

    async def _leases(self, worker: str) -> list[str]:
        await self._runs(queue="bench")
        leases: list[str] = []
        while len(leases) < self.options.subjects:
            path, wish = f"/v1/workers/{worker}/lease", {"max": LEASES_PER_CALL, "wait": 1}
            told = await ask(self.port, self.key, "POST", path, wish)
            leases += [run["lease_id"] for run in told["runs"]]
        return leases

    async def _runs(self, **wishes: str) -> list[str]:
        items = [{"handler": "noop", **wishes}] * self.options.subjects
        told = await ask(self.port, self.key, "POST", "/v1/runs/batch", {"items": items})
        return [run["id"] for run in told["items"]]


def tell(
    report: Report,
    options: argparse.Namespace,
    connections: int,
    found: dict[str, dict[str, Any]],
    comfort: dict[str, dict[str, Any]],
    *,
    others: float,
) -> None:
    """One step, and a line for each vital request."""
    settings: dict[str, object] = {"seconds": options.seconds, "room": options.room}
    pressing = found["pressing"]
    good = pressing["per_second"]
    report.tell(
        f"{connections} connections",
        settings,
        created_per_second=good,
        of_comfort=round(good / max(comfort["pressing"]["per_second"], 1), 2),
        refused_per_second=pressing["refused_per_second"],
        p50_ms=pressing["p50_ms"],
        p99_ms=pressing["p99_ms"],
        api_mb=resident_mb(os.getpid()),
        others_share=others,
    )
    for mode in VITAL:
        vital = found[mode]
        report.tell(
            f"{connections} connections, {mode}",
            settings,
            requests=vital["requests"],
            refused=vital["refused"],
            p50_ms=vital["p50_ms"],
            p99_ms=vital["p99_ms"],
            max_ms=vital["max_ms"],
        )


def recovered_after(by_second: list[int], before: int) -> int:
    """The first second that was as good as before the load; 0 when none was."""
    good = [second for second, done in enumerate(by_second, 1) if done >= before * AS_BEFORE]
    return good[0] if good else 0
