"""Whom an event concerns. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from betimes.domain.callback import callback_endpoint_id, read_callbacks
from betimes.domain.errors import Invalid
from betimes.domain.event import FIRING, RESOLVED
from betimes.domain.ids import JobId, RunId, TenantId, from_text, to_text
from betimes.domain.notice import wants
from betimes.store.endpoints import Endpoint
from betimes.store.routing import Labels, News

NO_LABELS = Labels({}, ())
ENDINGS = frozenset(
    {"run.succeeded", "run.dead", "run.cancelled", "run.skipped", "run.expired", "run.missed"}
)


@dataclass(frozen=True, slots=True)
class Matched:
    """An event, and somebody to be told of it."""

    event: News
    endpoint: Endpoint


def subjects_of(news: Sequence[News], *, with_tags: bool) -> tuple[list[JobId], list[RunId]]:
    """The jobs and runs whose labels are needed: for callbacks, and for filters by tag."""
    jobs: set[JobId] = set()
    runs: set[RunId] = set()
    for one in news:
        if one.type not in ENDINGS and not with_tags:
            continue
        job, run = _id(one, "job"), _id(one, "run")
        if job is not None:
            jobs.add(JobId(job))
        elif run is not None:
            runs.add(RunId(run))
    return sorted(jobs), sorted(runs)


def matches(
    tenant: TenantId,
    listeners: Sequence[Endpoint],
    news: Sequence[News],
    labels: Mapping[UUID, Labels],
    *,
    shards: int,
) -> Iterator[Matched]:
    """Every event with everybody it concerns, once each."""
    for event in news:
        carried = labels_of(event, labels)
        told: set[UUID] = set()
        for endpoint in (
            *_listening(event, listeners, carried.tags),
            *_called_back(tenant, event, listeners, carried, shards),
        ):
            if endpoint.id not in told:
                told.add(endpoint.id)
                yield Matched(event, endpoint)


def hears(endpoint: Endpoint, event: News, tags: Mapping[str, str]) -> bool:
    """Whether an endpoint is to be told of an event, whenever it arrived."""
    targets = event.body.get("targets") if event.type in (FIRING, RESOLVED) else None
    if targets:
        # A rule that names its targets tells them and nobody else.
        return to_text("ep", endpoint.id) in targets
    return wants(endpoint.event_types, endpoint.filter, event.type, event.body, tags)


def _listening(
    event: News, listeners: Sequence[Endpoint], tags: Mapping[str, str]
) -> Iterator[Endpoint]:
    for one in listeners:
        if event.arrived_at >= one.listens_since and hears(one, event, tags):
            yield one


def _called_back(
    tenant: TenantId,
    event: News,
    listeners: Sequence[Endpoint],
    carried: Labels,
    shards: int,
) -> Iterator[Endpoint]:
    if event.type not in ENDINGS or not carried.notify:
        return
    known = {to_text("ep", one.id): one for one in listeners}
    for callback in read_callbacks(carried.notify):
        if not callback.is_for(event.type):
            continue
        if callback.endpoint is not None:
            if (found := known.get(callback.endpoint)) is not None:
                yield found
        elif callback.url is not None:
            yield _endpoint_of(tenant, callback.url, event, shards)


def _endpoint_of(tenant: TenantId, url: str, event: News, shards: int) -> Endpoint:
    return Endpoint(
        id=callback_endpoint_id(tenant, url, shards=shards),
        tenant=tenant,
        kind="webhook",
        name="callback",
        address=url,
        event_types=(),
        created_at=event.arrived_at,
        updated_at=event.arrived_at,
        listens_since=event.arrived_at,
        is_callback=True,
    )


def labels_of(event: News, labels: Mapping[UUID, Labels]) -> Labels:
    """What the job or run of an event carries."""
    job, run = _id(event, "job"), _id(event, "run")
    found = labels.get(job or run or event.id)
    tags = event.body.get("tags")
    if found is None:
        return Labels(tags, ()) if isinstance(tags, dict) else NO_LABELS
    return found


def _id(event: News, noun: str) -> UUID | None:
    text = event.body.get(f"{noun}_id")
    if not isinstance(text, str):
        return None
    try:
        return from_text(noun, text)
    except Invalid:
        return None
