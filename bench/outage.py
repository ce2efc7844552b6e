"""A target that dies under steady load, and another one that does not: real processes and sockets.

A node as `betimes dev` starts it is asked for so many runs a minute to each of two origins. One of
them answers 503 for a while. Told are the requests it got meanwhile, how it was asked again
afterwards, whether every run came through, and how late the runs of the other origin were.

One JSON line for each figure on stdout; the table goes to stderr. The exit code is 1 when a run is
lost or the dying target got more than a tenth beyond its steady load.
"""

import argparse
import asyncio
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import msgspec

from bench.kit.report import Report, lags_ms
from betimes.app.run import run_to_end

ANSWERS = {
    status: f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode() for status in (200, 503)
}
TOO_BUSY = (429, 503)
RAMP = (1, 2, 5, 10, 20, 30, 60)
"""Seconds after the first good answer at which the pace is told."""


@dataclass(slots=True)
class Origin:
    """A target that remembers when it was asked for what."""

    down: bool = False
    port: int = 0
    asked: list[tuple[float, int]] = field(default_factory=list)
    done: dict[int, float] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the other end goes."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if size := re.search(rb"(?i)content-length: (\d+)", head):
                    await reader.readexactly(int(size[1]))
                number = int(head.split(b" ", 2)[1][1:])
                self.asked.append((monotonic(), number))
                if not self.down:
                    self.done.setdefault(number, monotonic())
                writer.write(ANSWERS[503 if self.down else 200])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def requests(self, since: float, until: float) -> int:
        """How many came within a time."""
        return sum(since <= at < until for at, _ in self.asked)


def main(arguments: list[str]) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="bench outage", description=__doc__)
    parser.add_argument("--per-minute", type=int, default=1_000, help="runs to each origin")
    parser.add_argument("--before", type=float, default=60.0, help="seconds before the outage")
    parser.add_argument("--outage", type=float, default=600.0, help="seconds of the outage")
    parser.add_argument("--after", type=float, default=180.0, help="seconds after it")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    options = parser.parse_args(arguments)
    if options.quick:
        options.before, options.outage, options.after = 2.0, 4.0, 4.0
    report = Report("outage")
    code = run_to_end(measure(options, report))
    report.table()
    return code


async def measure(options: argparse.Namespace, report: Report) -> int:
    """One outage."""
    dying, well = Origin(), Origin()
    made: dict[int, float] = {}
    async with served(dying), served(well), a_node() as (port, key):
        began = monotonic()
        dies, back = began + options.before, began + options.before + options.outage
        ends = back + options.after
        api = Api(port, key)
        number = 0
        while (now := monotonic()) < ends:
            dying.down = dies <= now < back
            wanted = int((now - began) / 60 * options.per_minute) - number
            if wanted > 0:
                fresh = range(number, number + wanted)
                number += wanted
                made |= dict.fromkeys(fresh, now)
                await api.enqueue(
                    [f"http://127.0.0.1:{one.port}/{n}" for n in fresh for one in (dying, well)]
                )
            await asyncio.sleep(0.25)
        report.progress(f"{number} runs made; waiting for the last ones")
        until = monotonic() + 300
        while len(dying.done) < number and monotonic() < until:  # noqa: ASYNC110 -- others count
            await asyncio.sleep(0.5)
    return tell(options, report, made, dying, well, (began, dies, back))


def tell(
    options: argparse.Namespace,
    report: Report,
    made: dict[int, float],
    dying: Origin,
    well: Origin,
    times: tuple[float, float, float],
) -> int:
    """What was seen; the exit code."""
    began, dies, back = times
    settings: dict[str, object] = {
        "per_minute": options.per_minute,
        "outage_seconds": options.outage,
    }
    during = dying.requests(dies, back)
    steady = options.per_minute / 60 * options.outage
    lost = len(made.keys() - dying.done.keys()) + len(made.keys() - well.done.keys())
    first = min((at for at, number in dying.asked if at >= back), default=back)
    report.tell(
        "dying origin",
        settings,
        runs=len(made),
        lost=lost,
        requests_before=dying.requests(began, dies),
        requests_during=during,
        steady_state_during=round(steady),
        found_well_after_seconds=round(first - back, 1),
        last_done_after_seconds=round(max(dying.done.values(), default=back) - back, 1),
        node_cpu_seconds=round(_cpu_of_children(), 1),
        twice_delivered=sum(n > 1 for n in Counter(n for at, n in well.asked).values()),
    )
    per_second = {f"second_{n}": dying.requests(first + n - 1, first + n) for n in RAMP}
    report.tell("requests per second when it is back", settings, **per_second)
    for name, since, until in (
        ("before", began, dies),
        ("during", dies, back),
        ("after", back, back + options.after),
    ):
        lags = [
            well.done[n] - at for n, at in made.items() if since <= at < until and n in well.done
        ]
        report.tell(f"lag of the other origin {name}", settings, **lags_ms(lags))
    return 1 if lost or during > 1.1 * steady else 0


def _cpu_of_children() -> float:
    """What the node and its database have used up altogether; they have ended by now."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@asynccontextmanager
async def served(origin: Origin) -> AsyncIterator[None]:
    """A target on a port of its own."""
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, backlog=1024)
    origin.port = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        server.close()


class Api:
    """As much of the API as is needed, over one connection at a time."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key
        self._number = 0
        self.refused = 0

    async def enqueue(self, urls: list[str]) -> None:
        """Runs that are requests, at once."""
        self._number += 1
        items = [
            {"target": {"type": "http", "url": url}, "retry": {"max_attempts": 20}} for url in urls
        ]
        body = msgspec.json.encode({"items": items})
        head = (
            f"POST /v1/runs/batch HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {self._key}\r\n"
            f"idempotency-key: outage-{self._number}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        while (answer := await self._ask(head.encode() + body))[0] in TOO_BUSY:
            # As any client would; the runs are as late as that makes them.
            self.refused += 1
            await asyncio.sleep(0.2)
        if answer[0] >= 300:
            raise RuntimeError(answer[1][-500:].decode())

    async def _ask(self, request: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        return int(answer.split(b" ", 2)[1]), answer


@asynccontextmanager
async def a_node() -> AsyncIterator[tuple[int, str]]:
    """`betimes dev` in a process of its own: the port of its API and a key."""
    home = Path(tempfile.mkdtemp(prefix="betimes-outage-"))
    home.chmod(0o755)  # noqa: ASYNC240 -- nothing else goes on yet
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "betimes", "dev", "--no-demo"),
        *("--set", "log.format=json", "--log-level", "info"),
        cwd=home,
        env={
            **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG")},
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "share"),
            "BETIMES_API_PORT": "0",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out = process.stdout
    assert out is not None
    try:
        key, port = "", 0
        while not port:
            line = (await out.readline()).decode()
            if not line:
                raise RuntimeError("the node ended before it listened")
            if "key for development: in " in line:
                key = Path(line.rsplit(" in ", 1)[1].strip()).read_text().strip()  # noqa: ASYNC240 -- as above
            if found := re.search(r'"url":"http://127\.0\.0\.1:(\d+)"', line):
                port = int(found[1])
        reading = asyncio.create_task(out.read(-1))
        yield port, key
        process.terminate()
        await process.wait()
        await reading
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        shutil.rmtree(home, ignore_errors=True)
