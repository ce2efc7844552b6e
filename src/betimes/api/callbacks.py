"""Callbacks of jobs and runs between wire and domain."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from betimes.api.call import Call
from betimes.domain.callback import ENDS, EVENTS_OF, read_callbacks
from betimes.domain.errors import Invalid
from betimes.domain.ids import from_text, to_text
from betimes.domain.job import Job
from betimes.ops.endpoints import name_endpoints
from betimes.target.url import UrlPolicy, read_url
from betimes.wire import callbacks as wire

NAMES_SHOWN_MAX = 20


class Telling(Protocol):
    """A job or a run, as far as it tells somebody how it ended."""

    notify: list[wire.Callback]


@dataclass(frozen=True, slots=True)
class Listeners:
    """The endpoints of a tenant by their ids, each with its name."""

    names: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    """Those a job has named before: they may be gone, which is no reason to refuse other edits."""

    def find(self, text: str, *, pointer: str) -> dict[str, str]:
        """An endpoint by its id or its name, as it is kept.

        Raises:
            Invalid: there is no such endpoint of the tenant, or more than one.

        """
        identity = _identity(text)
        if identity is None:
            identity = self._named(text, pointer)
        elif identity in self.kept and identity not in self.names:
            return {"endpoint": identity}
        if identity not in self.names:
            raise self._unknown(text, pointer)
        return {"endpoint": identity, "name": self.names[identity]}

    def _named(self, name: str, pointer: str) -> str:
        found = sorted(identity for identity, known in self.names.items() if known == name)
        if not found:
            raise self._unknown(name, pointer)
        if len(found) > 1:
            raise Invalid(
                f"expected an endpoint, got {name!r}, which is the name of {len(found)}: "
                f"say one of {', '.join(found[:NAMES_SHOWN_MAX])}",
                pointer=pointer,
            )
        return found[0]

    def _unknown(self, text: str, pointer: str) -> Invalid:
        names = sorted(set(self.names.values()))
        known = ", ".join(names[:NAMES_SHOWN_MAX]) or "none"
        more = f" and {len(names) - NAMES_SHOWN_MAX} more" if len(names) > NAMES_SHOWN_MAX else ""
        return Invalid(
            f"expected the id or name of an endpoint that is there, got {text[:100]!r}; "
            f"there are: {known}{more}",
            pointer=pointer,
        )


NOBODY = Listeners()


async def listeners_of(
    call: Call[Any, Any], asked: Iterable[Telling], *, job: Job | None = None
) -> Listeners:
    """The endpoints that may be told; nothing is read where none is asked for."""
    if all(one.endpoint is None for each in asked for one in each.notify):
        return NOBODY
    names = await name_endpoints(call.service.desk, call.tenant)
    stored = () if job is None else job.definition.options.get("notify") or ()
    return Listeners(
        names={to_text("ep", identity): name for identity, name in names.items()},
        kept=frozenset(one.endpoint for one in read_callbacks(stored) if one.endpoint is not None),
    )


def callbacks_of(
    asked: Sequence[wire.Callback], policy: UrlPolicy, listeners: Listeners
) -> list[dict[str, Any]]:
    """Whom to tell how a run ended, as it is kept: checked, and only what was said."""
    return [_stored(one, policy, listeners, f"/notify/{place}") for place, one in enumerate(asked)]


def _stored(
    asked: wire.Callback, policy: UrlPolicy, listeners: Listeners, pointer: str
) -> dict[str, Any]:
    if (asked.url is None) == (asked.endpoint is None):
        raise Invalid("expected a url or an endpoint", pointer=pointer)
    told: dict[str, Any] = {}
    if asked.url is not None:
        told["url"] = str(read_url(asked.url, policy, pointer=f"{pointer}/url"))
    if asked.endpoint is not None:
        told |= listeners.find(asked.endpoint, pointer=f"{pointer}/endpoint")
    wanted = [end for end in EVENTS_OF if end in asked.on]
    if wanted and not set(ENDS) <= set(wanted):
        told["on"] = wanted
    return told


def _identity(text: str) -> str | None:
    """An id in the one spelling that is kept, or None for what is a name."""
    try:
        return to_text("ep", from_text("ep", text))
    except Invalid:
        return None
