"""What tasks and calls may be told, as users write it, and as the API reads it."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from betimes.domain.errors import Invalid
from betimes.sdk.control import Pause

Pool = Literal["thread", "process"]


class RetryOptions(TypedDict, total=False):
    """When to try again and when to stop; what is left out has the service's default."""

    max_attempts: int
    backoff: Literal["exponential", "linear", "fixed", "list"]
    initial: Pause
    factor: float
    max: Pause
    delays: list[Pause]
    jitter: Literal["full", "equal", "none"]
    max_elapsed: Pause
    retry_on: list[str]
    give_up_on: list[str]


class DstOptions(TypedDict, total=False):
    """What becomes of local times that do not exist or exist twice."""

    gap: Literal["next", "skip", "shift"]
    overlap: Literal["first", "second", "both"]


class CatchupOptions(TypedDict, total=False):
    """What becomes of fires that were missed."""

    policy: Literal["none", "latest", "all"]
    window: Pause
    max: int


class ConcurrencyOptions(TypedDict, total=False):
    """How many runs with one key may be in flight."""

    key: str
    limit: int
    on_limit: Literal["wait", "skip"]


class DedupeOptions(TypedDict, total=False):
    """A business key, for how long it counts, and what a second one means."""

    key: str
    window: Pause
    form: Literal["unique", "throttle", "debounce"]


class ScheduleOptions(TypedDict, total=False):
    """When a task runs by itself."""

    schedule: str | Mapping[str, Any]
    timezone: str
    dst: DstOptions
    catchup: CatchupOptions
    overlap: Literal["allow", "skip", "buffer_one", "buffer_all", "cancel_running", "replace"]
    jitter: Pause
    window: Pause
    calendars: Mapping[str, Any]
    start_at: str
    end_at: str
    max_fires: int
    pause_after_failures: int


class TaskOptions(ScheduleOptions, total=False):
    """Everything `@app.task` takes."""

    name: str
    description: str
    queue: str
    priority: int
    timeout: Pause
    retry: RetryOptions
    start_deadline: Pause
    concurrency: ConcurrencyOptions
    fairness_key: str
    tags: Mapping[str, str]
    lease: Pause
    """How long the service waits for a silent worker before it gives the run to another one."""
    pool: Pool
    """Where a plain function runs: in a thread, or in a process of its own."""
    on_dead: Callable[..., Any]
    """Called by the worker that reported the last failure, with a `DeadRun`; a task is enqueued."""


class CallOptions(TypedDict, total=False):
    """Everything `configure` takes: what is different about one call."""

    delay: Pause
    at: datetime | str
    timezone: str
    queue: str
    priority: int
    timeout: Pause
    retry: RetryOptions
    start_deadline: Pause
    concurrency: ConcurrencyOptions
    fairness_key: str
    tags: Mapping[str, str]
    dedupe_key: str
    dedupe: DedupeOptions
    idempotency_key: str


SCHEDULE_MEMBERS = frozenset(ScheduleOptions.__annotations__)
RUN_MEMBERS = (
    "queue",
    "priority",
    "timeout",
    "retry",
    "start_deadline",
    "concurrency",
    "fairness_key",
    "tags",
)
CALL_MEMBERS = (*RUN_MEMBERS, "delay", "at", "dedupe_key", "dedupe")


def check_names(given: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    """A misspelt option is an error where it is written, not a default that nobody asked for."""
    for name in given:
        if name not in known:
            raise TypeError(f"expected {what} out of {', '.join(sorted(known))}, got {name!r}")


TASK_OPTIONS = frozenset(TaskOptions.__annotations__)
CALL_OPTIONS = frozenset(CallOptions.__annotations__)


def run_members(options: Mapping[str, Any], names: tuple[str, ...] = RUN_MEMBERS) -> dict[str, Any]:
    """The members of a run or job out of options, as the API reads them."""
    found = {name: plain(options[name]) for name in names if options.get(name) is not None}
    if "at" in found:
        found["at"] = instant(options["at"], options.get("timezone"))
    return found


def plain(value: Any) -> Any:
    """Durations as seconds, mappings and lists of them likewise."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def instant(at: datetime | str, timezone: str | None) -> str:
    """A moment as RFC 3339; a local one is read in the zone it comes with.

    Raises:
        Invalid: it has neither offset nor zone, or does not exist because clocks jumped.

    """
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError as error:
        raise Invalid(f"expected a time such as 2026-12-24T15:00, got {at!r}") from error
    if moment.tzinfo is not None:
        return moment.isoformat()
    if timezone is None:
        raise Invalid(f"expected an offset, or a timezone beside it, got {at}")
    try:
        local = moment.replace(tzinfo=ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise Invalid(f"expected a time zone such as Europe/Stockholm, got {timezone!r}") from error
    if _does_not_exist(local):
        raise Invalid(f"expected a time that exists: {moment} is skipped in {timezone}")
    return local.isoformat()


def _does_not_exist(local: datetime) -> bool:
    """In a gap the two readings of a local time lie the wrong way around."""
    return (local.utcoffset() or timedelta()) < (local.replace(fold=1).utcoffset() or timedelta())


def seconds_of(pause: Pause) -> float:
    """A length of time in seconds."""
    if isinstance(pause, timedelta):
        return pause.total_seconds()
    if isinstance(pause, int | float):
        return float(pause)
    from betimes.schedule.duration import read_duration  # noqa: PLC0415 -- rarely needed here

    return read_duration(pause).elapsed() / 1_000_000
