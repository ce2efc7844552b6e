"""How much a worker over HTTP does at once, and for how long it holds it."""

from datetime import timedelta

import pytest

from betimes import App
from betimes.api.worker_limits import EXTEND_MAX, worker_config
from betimes.runtime.worker import WorkerOptions, size_of
from betimes.wire.workers import Registered

TOLD = Registered(
    worker_id="worker_1",
    heartbeat_interval="PT10S",
    lease_duration="PT30S",
    server_time="2026-01-01T00:00:00Z",
    config=worker_config(timedelta(seconds=20)),
)


@pytest.mark.parametrize(
    ("wanted", "ttl"),
    [
        ("10s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("3h", EXTEND_MAX),
    ],
)
def test_a_lease_is_believed_for_no_longer_than_the_service_extends_one(
    wanted: str, ttl: timedelta
) -> None:
    app = App("http://127.0.0.1:1", "key", name="tests")

    @app.task(lease=wanted)
    def dig() -> None:
        """Nothing."""

    assert size_of(app, WorkerOptions(name="w"), TOLD).lease_ttl == ttl
