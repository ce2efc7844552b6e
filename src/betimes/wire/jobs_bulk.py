"""Actions over many jobs as they are asked for."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Json, Members
from betimes.wire.jobs import (
    FairnessKey,
    Handler,
    Name,
    OperationId,
    Priority,
    Queue,
    Reason,
    Retry,
    Tags,
)


class JobChoice(Asked):
    """Which jobs a bulk action means."""

    state: list[Literal["active", "paused", "auto_paused", "completed", "cancelled"]] = []
    queue: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    handler: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    group: Name | None = None
    name_prefix: Name | None = None
    tags: Tags = {}


class SetJob(Asked, omit_defaults=True):
    """Members that every job gets; what is left out stays, null takes away."""

    handler: Handler | msgspec.UnsetType = msgspec.UNSET
    payload: Json = msgspec.UNSET
    queue: Queue | msgspec.UnsetType = msgspec.UNSET
    priority: Priority | msgspec.UnsetType = msgspec.UNSET
    description: Annotated[str, msgspec.Meta(max_length=2000)] | msgspec.UnsetType = msgspec.UNSET
    retry: Retry | msgspec.UnsetType | None = msgspec.UNSET
    timeout: Duration | msgspec.UnsetType | None = msgspec.UNSET
    start_deadline: Duration | msgspec.UnsetType | None = msgspec.UNSET
    tags: Tags | msgspec.UnsetType = msgspec.UNSET
    metadata: Members | msgspec.UnsetType = msgspec.UNSET
    fairness_key: FairnessKey | msgspec.UnsetType | None = msgspec.UNSET


class BulkJobs(Asked):
    """An action over a filter; `confirm_count` must be what it would touch."""

    action: Literal["pause", "resume", "cancel", "delete", "set"]
    filter: JobChoice
    set_: SetJob | None = msgspec.field(default=None, name="set")
    reason: Reason = ""
    rate_per_second: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    dry_run: bool = False
    confirm_count: Annotated[int, msgspec.Meta(ge=0, le=1000000)] | None = None
    operation_id: OperationId | None = None
