"""Serve the API on a throw-away PostgreSQL and let schemathesis loose on it.

All arguments go to schemathesis. Exits with its code, or 1 when the service logged a failure or
answered with 5xx. At the end it says how many requests the service has answered, and how.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from api_kit import served  # noqa: E402 -- the kit of the tests lies beside
from betimes.telemetry import Telemetry  # noqa: E402
from betimes.testing.postgres import postgres_kit  # noqa: E402

# The first two never end by themselves; the last would close the tenant under test.
EXCLUDED = ("events.stream", "runs.follow_log", "tenants.suspend")
PLENTY = 1_000_000_000


async def fuzz(dsn: str, arguments: list[str]) -> int:
    """One run; its exit code."""
    async with served(
        dsn,
        requests_per_minute=PLENTY,
        creates_per_minute=PLENTY,
        bulk_per_minute=1_000_000,
        leases_per_minute=PLENTY,
        failures_per_minute=PLENTY,
        long_poll_max=timedelta(milliseconds=10),
    ) as api:
        command = [
            *(
                sys.executable,
                "-m",
                "schemathesis.cli",
                "--config-file",
                HERE / "schemathesis.toml",
            ),
            *("run", f"http://127.0.0.1:{api.port}/v1/openapi.json", "--checks", "all"),
            *("-H", f"Authorization: Bearer {await api.key()}"),
            *(part for name in EXCLUDED for part in ("--exclude-operation-id", name)),
            *arguments,
        ]
        began = perf_counter()
        process = await asyncio.create_subprocess_exec(*map(str, command))
        code = await process.wait()
        failed = [event for event in api.recorder.events if event.name == "request.failed"]
        for event in failed[:20]:
            sys.stderr.write(f"{event.metadata} {event.error!r}\n")
        answered = answers(api.service.telemetry)
        sys.stderr.write(
            f"{told(answered, perf_counter() - began)}, {len(failed)} failed on our side\n"
        )
        return code or bool(failed) or bool(answered["5xx"])


def answers(telemetry: Telemetry) -> Counter[str]:
    """How many requests were answered, by the class of their status; 5xx are told at once."""
    found: Counter[str] = Counter()
    for reading in telemetry.snapshot():
        if reading.metric.name == "betimes_requests_total":
            labels = dict(reading.labels)
            found[labels["status"]] += int(reading.value)
            if labels["status"] == "5xx":
                sys.stderr.write(f"{labels['operation']} answered {reading.value:.0f} x 5xx\n")
    return found


def told(answered: Counter[str], seconds: float) -> str:
    """The same in words."""
    total = answered.total()
    parts = ", ".join(f"{name} {answered[name]:,}" for name in sorted({*answered, "5xx"}))
    return f"{total:,} requests answered in {seconds:.0f} s ({total / seconds:.0f}/s): {parts}"


def main() -> int:
    """Start the database, fuzz, stop it."""
    with tempfile.TemporaryDirectory(prefix="betimes-fuzz-") as folder:
        place = Path(folder)
        place.chmod(0o711)
        with postgres_kit(place / "server") as server:
            name = asyncio.run(server.create())
            return asyncio.run(fuzz(server.dsn(name), sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
