"""Names that the service knows, offered while one types; silence when it cannot be asked."""

from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from betimes.cli.invocation import invocation_of

MOST = 30
PATIENCE_SECONDS = 1.5


class Source(NamedTuple):
    """Where names come from: a list, its member, and whether it takes a prefix."""

    path: str
    member: str
    prefix: bool = False


SOURCES = {
    "job": Source("/v1/jobs", "name", prefix=True),
    "run": Source("/v1/runs", "id"),
    "queue": Source("/v1/queues", "name"),
    "worker": Source("/v1/workers", "id"),
    "letter": Source("/v1/dead-letters", "id"),
    "calendar": Source("/v1/calendars", "name"),
    "catchup": Source("/v1/catchups", "id"),
    "workflow": Source("/v1/workflows", "name"),
    "workflow-run": Source("/v1/workflow-runs", "id"),
    "operation": Source("/v1/operations", "id"),
    "tenant": Source("/v1/tenants", "slug"),
    "key": Source("/v1/api-keys", "id"),
    "member": Source("/v1/members", "id"),
    "endpoint": Source("/v1/endpoints", "id"),
    "secret": Source("/v1/secrets", "name"),
    "rate-limit": Source("/v1/rate-limits", "key"),
    "node": Source("/v1/cluster/nodes", "name"),
}


def source_of(parameter: str, path: str) -> str:
    """Which names a parameter of a path takes; two kinds of things are called a key."""
    return "rate-limit" if path.startswith("/v1/rate-limits/") else parameter


class NameOf(click.ParamType[str]):
    """Text that names something of the service."""

    name = "text"

    def __init__(self, noun: str, *others: str) -> None:
        self.noun = noun
        self.nouns = (noun, *others)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name alone, also of what `-o name` prints: `run/run_01JD…`."""
        del param
        text = str(value)
        before, _, name = text.partition("/")
        group = ctx.parent.info_name if ctx is not None and ctx.parent is not None else None
        return name if name and before in (*self.nouns, group) else text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin so."""
        del param
        source = SOURCES.get(self.noun)
        if source is None:
            return []
        return [CompletionItem(name) for name in _names(ctx, source, incomplete)]


def _names(context: click.Context, source: Source, incomplete: str) -> list[str]:
    """What the service answers in a moment; whatever goes wrong, nothing is offered."""
    from betimes.cli.session import Session, way_by  # noqa: PLC0415 -- only while completing

    query: dict[str, Any] = {"limit": MOST}
    if source.prefix and incomplete:
        query["name_prefix"] = incomplete
    if source.path.endswith("/nodes"):
        query = {}
    try:
        way = way_by(invocation_of(context).wishes)
        session = Session(way, timeout=PATIENCE_SECONDS, retry_for=0.0)
        with session.client:
            items = session.ask("GET", source.path, query=query).json()["items"]
    except Exception:  # noqa: BLE001 -- a prompt is no place for errors
        return []
    names = [str(item[source.member]) for item in items if item.get(source.member)]
    return [name for name in names if name.startswith(incomplete)]
