"""A load generator in a process of its own: keeps connections busy, one request after the other.

python -m bench.kit.http_load PORT KEY MODE CONNECTIONS SECONDS SUBJECT

What is vital (pausing, cancelling, completing, heartbeats) has a mode for each; its subject is a
file with the things to act on, one to a line, each used once unless it is the only one.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path
from time import perf_counter

from betimes.app.run import run_to_end

JOB = b'{"schedule":"every 1h","handler":"noop","payload":{"n":1}}'
RUN = b'{"handler":"noop","payload":{"n":1},"queue":"one"}'
BATCH_RUNS = 1_000
BATCH = b'{"items":[' + b",".join([b'{"handler":"noop","queue":"bench"}'] * BATCH_RUNS) + b"]}"
LEASE = b'{"max":100,"wait":0}'
SHED = 503
VITAL = ("pause", "cancel", "complete", "heartbeat")
VITAL_PAUSE_SECONDS = 0.01
"""Between two vital requests of a connection: they are beside the load, not a part of it."""


class Requests:
    """What one connection sends, in order, and how much each answer counts."""

    def __init__(self, mode: str, key: str, subject: str, connection: int) -> None:
        self._mode = mode
        self._subject = subject
        self._key = key
        self._numbers: Iterator[int] = count(connection * 1_000_000_000)
        self._leases: list[str] = []
        self._paused = False
        self._subjects: Iterator[str] = iter(())
        if mode in VITAL:
            lines = Path(subject).read_text(encoding="ascii").split()
            self._subjects = cycle(lines) if len(lines) == 1 else iter(lines)

    @property
    def presses(self) -> bool:
        """Whether being refused is part of the game."""
        return self._mode == "pressing" or self.is_vital

    @property
    def is_vital(self) -> bool:
        """Whether it must always get through."""
        return self._mode in VITAL

    def next(self) -> bytes | None:
        """The bytes of the next request; None when there is nothing left to act on."""
        match self._mode:
            case "hello":
                return self._request("GET", "/", b"")
            case "health":
                return self._request("GET", "/healthz", b"")
            case "jobs" | "pressing":
                return self._request("POST", "/v1/jobs", JOB)
            case "runs":
                return self._request("POST", "/v1/runs", RUN)
            case "batch":
                return self._request("POST", "/v1/runs/batch", BATCH)
            case "get":
                return self._request("GET", f"/v1/jobs/{self._subject}", b"")
            case "list":
                return self._request("GET", f"/v1/jobs?limit=50{self._subject}", b"")
            case "drain":
                return self._drain()
        if self.is_vital:
            return self._vital()
        raise ValueError(self._mode)

    def heard(self, body: bytes) -> int:
        """How many things an answer has done."""
        if self._mode == "batch":
            return BATCH_RUNS
        if self._mode != "drain":
            return 1
        if self._leases:
            done, self._leases = len(self._leases), []
            return done
        self._leases = [run["lease_id"] for run in json.loads(body)["runs"]]
        return 0

    def _vital(self) -> bytes | None:
        subject = next(self._subjects, None)
        if subject is None:
            return None
        match self._mode:
            case "pause":
                self._paused = not self._paused
                verb = "pause" if self._paused else "resume"
                return self._request("POST", f"/v1/jobs/{subject}/{verb}", b"")
            case "cancel":
                return self._request("POST", f"/v1/runs/{subject}/cancel", b"")
            case "complete":
                return self._request("POST", f"/v1/leases/{subject}/complete", b"{}")
        return self._request("POST", f"/v1/workers/{subject}/heartbeat", b"{}")

    def _drain(self) -> bytes:
        if not self._leases:
            return self._request("POST", f"/v1/workers/{self._subject}/lease", LEASE)
        items = [{"lease_id": lease, "action": "complete"} for lease in self._leases]
        body = json.dumps({"items": items}).encode()
        return self._request("POST", "/v1/leases/batch", body)

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {self._key}\r\n"
            f"content-type: application/json\r\n"
            f"idempotency-key: {os.getpid()}-{next(self._numbers)}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body


class Tally:
    """What all connections of a load have seen."""

    def __init__(self) -> None:
        self.began = self.last = perf_counter()
        self.done = 0
        self.latencies: list[float] = []
        self.refused = 0
        self.by_second: Counter[int] = Counter()

    def answered(self, seconds: float, done: int) -> None:
        """A request was answered."""
        self.latencies.append(seconds)
        self.done += done
        self.last = perf_counter()
        self.by_second[int(self.last - self.began)] += done

    def told(self) -> dict[str, object]:
        """The figures, up to the last answer: those who are refused then wait for nothing."""
        spent = max(self.last - self.began, 1e-9)
        ordered = sorted(self.latencies) or [spent]  # nothing was answered at all
        return {
            "per_second": round(self.done / spent),
            "requests": len(self.latencies),
            "done": self.done,
            "refused": self.refused,
            "refused_per_second": round(self.refused / spent),
            "p50_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1e3, 2),
            "max_ms": round(ordered[-1] * 1e3, 2),
            "by_second": [self.by_second[second] for second in range(int(spent))],
        }


async def keep_busy(port: int, requests: Requests, until: float, tally: Tally) -> None:
    """One connection until the time is up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (asked_at := perf_counter()) < until and (request := requests.next()) is not None:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if status == SHED and requests.presses:
            tally.refused += 1
            continue
        if status >= 400:
            raise RuntimeError(f"{status}: {body[:300]!r}")
        tally.answered(perf_counter() - asked_at, requests.heard(body))
        if requests.is_vital:
            await asyncio.sleep(VITAL_PAUSE_SECONDS)
    writer.close()


async def load(arguments: list[str]) -> int:
    """Keep all connections busy; print what was done."""
    port, key, mode, connections, seconds, subject = arguments
    tally = Tally()
    until = tally.began + float(seconds)
    await asyncio.gather(
        *(
            keep_busy(int(port), Requests(mode, key, subject, number), until, tally)
            for number in range(int(connections))
        )
    )
    print(json.dumps(tally.told()))
    return 0


if __name__ == "__main__":
    sys.exit(run_to_end(load(sys.argv[1:])))
