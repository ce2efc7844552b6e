"""Every kind of operation, and how one of it is brought forward."""

from collections.abc import Mapping
from types import MappingProxyType

from betimes.ops.bulk_jobs import BULK_JOBS, JOBS
from betimes.ops.bulk_runs import BULK_LETTERS, BULK_RUNS, LETTERS, PURGE, RUNS
from betimes.ops.calendars import APPLY, step_apply
from betimes.ops.erase import DELETE, step_delete
from betimes.ops.operating import Kind
from betimes.ops.redelivery import REDELIVER, step_redelivery

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        JOBS: BULK_JOBS.step,
        RUNS: BULK_RUNS.step,
        LETTERS: BULK_LETTERS.step,
        PURGE: BULK_RUNS.step,
        APPLY: step_apply,
        DELETE: step_delete,
        REDELIVER: step_redelivery,
    }
)
