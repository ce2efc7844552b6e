"""Serve the API on a throw-away PostgreSQL and let schemathesis loose on it.

All arguments go to schemathesis. Exits with its code, or 1 when the service logged a failure.
"""

import asyncio
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from api_kit import served  # noqa: E402 -- the kit of the tests lies beside
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
        process = await asyncio.create_subprocess_exec(*map(str, command))
        code = await process.wait()
        failed = [event for event in api.recorder.events if event.name == "request.failed"]
        for event in failed[:20]:
            sys.stderr.write(f"{event.metadata} {event.error!r}\n")
        answered = sum(
            reading.value
            for reading in api.service.telemetry.snapshot()
            if reading.metric.name == "betimes_requests_total"
        )
        sys.stderr.write(f"{answered:.0f} requests answered, {len(failed)} failed on our side\n")
        return code or bool(failed)


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
