"""A load generator in a process of its own: keeps connections busy, one request after the other.

python -m bench.kit.http_load PORT KEY MODE CONNECTIONS SECONDS [SUBJECT]
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from itertools import count
from time import perf_counter

from betimes.app.run import run_to_end

JOB = b'{"schedule":"every 1h","handler":"noop","payload":{"n":1}}'
RUN = b'{"handler":"noop","payload":{"n":1},"queue":"one"}'
BATCH_RUNS = 1_000
BATCH = b'{"items":[' + b",".join([b'{"handler":"noop","queue":"bench"}'] * BATCH_RUNS) + b"]}"
LEASE = b'{"max":100,"wait":0}'
LEASES_PER_CALL = 100
SHED = 503


class Requests:
    """What one connection sends, in order, and how much each answer counts."""

    def __init__(self, mode: str, key: str, subject: str, connection: int) -> None:
        self._mode = mode
        self._subject = subject
        self._key = key
        self._numbers: Iterator[int] = count(connection * 1_000_000_000)
        self._leases: list[str] = []
        self._paused = False

    @property
    def presses(self) -> bool:
        """Whether being refused is part of the game."""
        return self._mode in ("pressing", "vital")

    def next(self) -> bytes:
        """The bytes of the next request."""
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
                return self._request("GET", "/v1/jobs?limit=50", b"")
            case "drain":
                return self._drain()
            case "vital":
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

    def _vital(self) -> bytes:
        self._paused = not self._paused
        verb = "pause" if self._paused else "resume"
        return self._request("POST", f"/v1/jobs/{self._subject}/{verb}", b"")

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


async def keep_busy(
    port: int, requests: Requests, until: float, done: list[float], refused: list[float]
) -> int:
    """One connection until the time is up; how much was done."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    total = 0
    while perf_counter() < until:
        asked_at = perf_counter()
        writer.write(requests.next())
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if status == SHED and requests.presses:
            refused.append(perf_counter() - asked_at)
            continue
        if status >= 400:
            raise RuntimeError(f"{status}: {body[:300]!r}")
        total += requests.heard(body)
        done.append(perf_counter() - asked_at)
    writer.close()
    return total


async def load(arguments: list[str]) -> int:
    """Keep all connections busy; print what was done."""
    port, key, mode, connections, seconds, subject = arguments
    began = perf_counter()
    until = began + float(seconds)
    latencies: list[float] = []
    refused: list[float] = []
    totals = await asyncio.gather(
        *(
            keep_busy(int(port), Requests(mode, key, subject, number), until, latencies, refused)
            for number in range(int(connections))
        )
    )
    spent = perf_counter() - began
    ordered = sorted(latencies) or [spent]  # nothing was answered at all
    print(
        json.dumps(
            {
                "per_second": round(sum(totals) / spent),
                "requests": len(ordered),
                "refused_per_second": round(len(refused) / spent),
                "p50_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
                "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1e3, 2),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_to_end(load(sys.argv[1:])))
