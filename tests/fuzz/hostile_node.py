"""Hostile schedules against a live node: does it still answer, and does it keep its shards?

    python tests/fuzz/hostile_node.py --seconds 60

Starts `betimes dev` with its default roles on an embedded PostgreSQL, in a folder that is removed
afterwards. Two clients, each a process of its own, send hostile schedules: one with a key that may
only read sends previews, one with a key that may write creates jobs, so the planner meets them too.
Meanwhile `/healthz` is asked every 20 ms. Prints how long that took and how many shards were lost.
Exits with 1 when the 99th percentile is above the bound, a shard was lost, or anything was answered
with 5xx.
"""

import argparse
import json
import multiprocessing
import signal
import sys
import tempfile
from collections import Counter
from http.client import HTTPConnection, HTTPException
from multiprocessing.queues import Queue
from pathlib import Path
from time import monotonic, sleep
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from hostile_schedules import schedules  # noqa: E402
from process_kit import running  # noqa: E402

BOUND_MS = 100.0
EVERY_SECONDS = 0.02
PATIENCE_SECONDS = 60.0
REVIEWED = {
    "type": "rrule",
    "expr": "FREQ=SECONDLY;COUNT=99999;BYHOUR=21;BYMINUTE=30;BYSECOND=2",
}


def ask(
    connection: HTTPConnection,
    method: str,
    path: str,
    key: str = "",
    body: Any = None,
    mark: str = "",
) -> tuple[int, Any]:
    """One request; its status and its body."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if mark:
        headers["Idempotency-Key"] = mark
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    read = answer.read()
    return answer.status, json.loads(read) if read.startswith(b"{") else read


def send(
    port: int, key: str, path: str, seed: int, seconds: float, found: "Queue[Counter[str]]"
) -> None:
    """One client: hostile schedules, one after the other, until the time is over."""
    told: Counter[str] = Counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    end = monotonic() + seconds
    for place, (_, members) in enumerate(schedules(seed, 1_000_000)):
        if monotonic() > end:
            break
        schedule = REVIEWED if place % 50 == 0 else members
        body: dict[str, Any] = {"schedule": schedule}
        body |= {"count": 1_000 if place % 7 == 0 else 10} if "preview" in path else {}
        body |= {"handler": "nobody"} if "preview" not in path else {}
        try:
            status, answer = ask(connection, "POST", path, key, body, f"hostile-{seed}-{place}")
        except (OSError, HTTPException) as error:
            told[type(error).__name__] += 1
            connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
            continue
        code = answer.get("code", "") if isinstance(answer, dict) and status >= 400 else ""
        told[f"{status} {code}".strip()] += 1
    found.put(told)


def probe(port: int, seconds: float) -> list[float]:
    """Milliseconds of every `/healthz`."""
    took: list[float] = []
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    end = monotonic() + seconds
    while (begin := monotonic()) < end:
        status, _ = ask(connection, "GET", "/healthz")
        took.append((monotonic() - begin) * 1_000)
        if status != 200:
            took[-1] = PATIENCE_SECONDS * 1_000
        sleep(EVERY_SECONDS)
    return sorted(took)


def key_for(port: int, admin: str, name: str, scopes: list[str]) -> str:
    """A key with these scopes."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    asked = {"name": name, "scopes": scopes}
    status, read = ask(connection, "POST", "/v1/api-keys", admin, asked, f"hostile-{name}")
    if status >= 300:
        raise SystemExit(f"no key for {scopes}: {read}")
    return str(read["secret"])


def attack(port: int, admin: str, seconds: float, seed: int) -> tuple[list[float], Counter[str]]:
    """Probe while both clients send."""
    reader = key_for(port, admin, "reader", ["jobs:read"])
    writer = key_for(port, admin, "writer", ["jobs:read", "jobs:write"])
    found: Queue[Counter[str]] = multiprocessing.Queue()
    clients = [
        multiprocessing.Process(target=send, args=(port, key, path, number, seconds, found))
        for number, (key, path) in enumerate(
            [(reader, "/v1/schedules/preview"), (writer, "/v1/jobs")], start=seed
        )
    ]
    for client in clients:
        client.start()
    took = probe(port, seconds)
    told: Counter[str] = Counter()
    for client in clients:
        told += found.get(timeout=PATIENCE_SECONDS)
        client.join()
    return took, told


def main() -> int:
    """Start, attack, judge."""
    reader = argparse.ArgumentParser(description="Hostile schedules against a live node.")
    reader.add_argument("--seconds", type=float, default=60.0)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--bound-ms", type=float, default=BOUND_MS)
    given = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="betimes-hostile-") as folder:
        home = Path(folder)
        home.chmod(0o711)
        arguments = ("dev", "--data", str(home / "data"), "--port", "0", "--no-demo")
        with running(home, *arguments, "--log-format", "json") as node:
            admin = node.until("key for development").rsplit(" ", 1)[1].strip()
            listening = json.loads(node.until("api.listening"))
            port = int(str(listening["url"]).rsplit(":", 1)[1])
            node.read_on()
            took, told = attack(port, admin, given.seconds, given.seed)
            node.popen.send_signal(signal.SIGTERM)
            node.end()
        lost = sum('"shard.lost"' in line for line in node.said)
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    print(", ".join(f"{name}: {number}" for name, number in told.most_common()))
    broken = sum(number for name, number in told.items() if name[0] == "5" or name[0].isalpha())
    print(
        f"{told.total()} hostile requests in {given.seconds:g} s; {len(took)} x /healthz: p50 "
        f"{p50:.1f} ms, p99 {p99:.1f} ms, max {took[-1]:.1f} ms; {lost} shards lost, "
        f"{broken} broken"
    )
    return 1 if p99 > given.bound_ms or lost or broken else 0


if __name__ == "__main__":
    sys.exit(main())
