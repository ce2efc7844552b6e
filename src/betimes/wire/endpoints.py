"""Endpoints, their deliveries and the types of events, as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Members, Shown, Text
from betimes.wire.jobs import Queue
from betimes.wire.keys import PageOnly
from betimes.wire.queues import RateLimit

Url = Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
Pattern = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=60,
        description="A type such as `run.dead`, all of a noun such as `job.*`, or `*`.",
    ),
]
Patterns = Annotated[list[Pattern], msgspec.Meta(min_length=1, max_length=50)]
Severity = Literal["info", "warning", "error", "critical"]
Concurrency = Annotated[
    int, msgspec.Meta(ge=1, le=32, description="Requests at once; 1 keeps the order of events.")
]
Payload = Annotated[
    Literal["thin", "full"],
    msgspec.Meta(
        description="`full` adds payload, result and error of the run an event is about; whoever "
        "asks for it needs the scope `payloads:read`."
    ),
]
Style = Literal["slack", "teams", "discord"]
Kind = Literal["webhook", "email", "chat"]


class EventFilter(Asked):
    """Which events of the wanted types; what is left out restricts nothing."""

    queues: Annotated[list[Queue], msgspec.Meta(max_length=50)] = []
    tags: Annotated[dict[str, str], msgspec.Meta(max_length=32)] = {}
    jobs: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=64)]],
        msgspec.Meta(max_length=50, description="Ids of jobs."),
    ] = []
    severity: Severity = "info"


class NewEndpoint(Asked):
    """Somebody to be told: a webhook or chat with a `url`, or a mail `address`."""

    type: Kind
    event_types: Patterns
    url: Url | None = None
    address: Annotated[str, msgspec.Meta(min_length=3, max_length=254)] | None = None
    style: Style = "slack"
    name: Text = "endpoint"
    filter: EventFilter | None = None
    concurrency: Concurrency = 4
    rate: RateLimit | None = None
    payload: Payload = "thin"
    disabled: bool = False


class ChangeEndpoint(Asked):
    """What of an endpoint may change; `disabled: false` sends again."""

    event_types: Patterns | None = None
    url: Url | None = None
    address: Annotated[str, msgspec.Meta(min_length=3, max_length=254)] | None = None
    style: Style | None = None
    name: Text | None = None
    filter: EventFilter | None = None
    concurrency: Concurrency | None = None
    rate: RateLimit | msgspec.UnsetType | None = msgspec.UNSET
    payload: Payload | None = None
    disabled: bool | None = None


class EndpointStatus(Shown):
    """How an endpoint fares."""

    state: str
    """`active`, `failing`, or `disabled`."""
    failures: int
    failing_since: Instant | None
    held_until: Instant | None
    last_success_at: Instant | None
    last_failure_at: Instant | None
    last_error: str | None


class Endpoint(Shown):
    """An endpoint; of a chat's URL only the origin is shown, because the rest is its password."""

    id: str
    type: str
    name: str
    url: str | None
    address: str | None
    style: str | None
    event_types: list[str]
    filter: Members
    concurrency: int
    rate: RateLimit | None
    payload: str
    is_callback: bool
    disabled: bool
    disabled_reason: str | None
    status: EndpointStatus
    revision: int
    etag: str
    created_at: Instant
    created_by: str | None
    updated_at: Instant
    secret: str | None = None
    """Shown once, when it is new."""
    secret_until: Instant | None = None
    """Until when the secret before it is used as well."""


class ListEndpoints(PageOnly):
    """Which endpoints; `callbacks` includes those that stand for callbacks of jobs."""

    callbacks: bool = False


class RotateSecret(Asked):
    """How long both secrets sign."""

    overlap: Duration = "PT24H"


class ListDeliveries(PageOnly):
    """Which deliveries."""

    state: list[Literal["waiting", "delivered", "failed"]] = []
    types: Annotated[list[str], msgspec.Meta(max_length=50)] = []


class Delivery(Shown):
    """An event on its way to an endpoint."""

    id: str
    endpoint_id: str
    event_id: str
    event_type: str
    state: str
    attempt: int
    is_test: bool
    status: int | None
    error: str | None
    ms: float | None
    response_snippet: str | None
    created_at: Instant
    next_attempt_at: Instant | None
    attempted_at: Instant | None
    finished_at: Instant | None


class RedeliverSince(Asked):
    """Events since an instant that an endpoint wants and has not got: failed, or never sent."""

    since: Instant
    operation_id: str | None = None


class EventType(Shown):
    """A type of events, with the shape of its data."""

    name: str
    severity: str
    says: str
    schema: Members
    example: Members


class EventTypes(Shown):
    """Every type there is."""

    items: list[EventType]
