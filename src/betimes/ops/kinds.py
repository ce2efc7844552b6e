"""Every kind of operation, and how one of it is brought forward."""

from collections.abc import Mapping
from types import MappingProxyType

from betimes.ops.bulk_runs import BULK, PURGE, step_runs
from betimes.ops.calendars import APPLY, step_apply
from betimes.ops.erase import DELETE, step_delete
from betimes.ops.operating import Kind
from betimes.ops.redelivery import REDELIVER, step_redelivery

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        BULK: step_runs,
        PURGE: step_runs,
        APPLY: step_apply,
        DELETE: step_delete,
        REDELIVER: step_redelivery,
    }
)
