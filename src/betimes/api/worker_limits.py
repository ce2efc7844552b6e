"""What the service takes from a worker at once, and how it is told."""

from datetime import timedelta

from betimes.wire import workers as wire
from betimes.wire.base import shown_duration

CHECKPOINT_BYTES_MAX = 64 * 1024
RESULT_BYTES_MAX = 256 * 1024
EXTEND_MAX = timedelta(hours=1)
WAIT_MAX = timedelta(seconds=wire.WAIT_SECONDS_MAX)


def worker_config(long_poll_max: timedelta) -> wire.WorkerConfig:
    """The limits of this node, for a worker that registers."""
    return wire.WorkerConfig(
        wait_max=shown_duration(min(long_poll_max, WAIT_MAX)),
        leases_max=wire.LEASES_MAX,
        reports_max=wire.REPORTS_MAX,
        extend_max=shown_duration(EXTEND_MAX),
        result_bytes_max=RESULT_BYTES_MAX,
        checkpoint_bytes_max=CHECKPOINT_BYTES_MAX,
        log_lines_max=wire.LOG_LINES_MAX,
        parcel_runs_max=wire.PARCEL_RUNS_MAX,
    )
