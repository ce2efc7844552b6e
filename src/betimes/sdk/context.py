"""What a handler is told about its run, and what it can say while it works.

Nothing here waits for the network: what is said goes to a voice, which the worker carries to the
service in the order in which it was said, and always before the end of the attempt is reported.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from betimes.sdk.control import Cancelled
from betimes.sdk.shapes import encode

if TYPE_CHECKING:
    from betimes.sdk.once import Once

CHECKPOINT_BYTES_MAX = 64 * 1024
MESSAGE_LENGTH_MAX = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """An attempt, as the service tells it to a worker."""

    run_id: str
    handler: str
    attempt: int = 1
    max_attempts: int = 1
    fence: int = 1
    queue: str = "default"
    priority: int = 5
    job_id: str | None = None
    due_at: datetime = EPOCH
    scheduled_for: datetime | None = None
    started_at: datetime = EPOCH
    timeout: timedelta | None = None
    idempotency_key: str = ""
    traceparent: str = ""
    checkpoint: Any = None
    tags: Mapping[str, str] = field(default_factory=dict)


class Voice(Protocol):
    """Carries what a handler says; callable from any thread."""

    def progress(self, percent: float, message: str | None) -> None:
        """How far it has come."""
        ...

    def checkpoint(self, data: bytes) -> None:
        """Where the next attempt may begin, as JSON."""
        ...

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """One line."""
        ...

    def wants_end(self) -> bool:
        """Whether the attempt should end soon."""
        ...


class Silence:
    """A voice nobody hears: for calling handlers without a worker."""

    def progress(self, percent: float, message: str | None) -> None:
        """Say nothing."""

    def checkpoint(self, data: bytes) -> None:
        """Keep nothing."""

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Write nothing."""

    def wants_end(self) -> bool:
        """Never."""
        return False


class Log:
    """Lines of the run's log: `ctx.log.info("sent", customer=7)`."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def debug(self, message: str, **fields: Any) -> None:
        """For whoever looks closely."""
        self._voice.log("debug", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """What happened."""
        self._voice.log("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """What should not have happened and did no harm."""
        self._voice.log("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """What did harm."""
        self._voice.log("error", message, fields)


class Context:
    """One attempt of one run, as its handler sees it."""

    def __init__(self, facts: Facts, voice: Voice | None = None) -> None:
        self._facts = facts
        self._voice: Voice = voice or Silence()
        self.log = Log(self._voice)

    @property
    def facts(self) -> Facts:
        """Everything that is known about the attempt."""
        return self._facts

    def said(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Add a line to the log of the run, at a level by name."""
        self._voice.log(level, message, fields)

    @property
    def run_id(self) -> str:
        """The run."""
        return self._facts.run_id

    @property
    def task(self) -> str:
        """The name of the task."""
        return self._facts.handler

    @property
    def job_id(self) -> str | None:
        """The job this is an occurrence of; None for what was enqueued."""
        return self._facts.job_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._facts.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts there may be."""
        return self._facts.max_attempts

    @property
    def fence(self) -> int:
        """Rises with every lease of the run: who keeps the highest can refuse a stale writer."""
        return self._facts.fence

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the run: for services that recognise repeats by a key."""
        return self._facts.idempotency_key or self._facts.run_id

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._facts.queue

    @property
    def priority(self) -> int:
        """0 to 9; 9 is the most urgent."""
        return self._facts.priority

    @property
    def tags(self) -> Mapping[str, str]:
        """What the run was tagged with."""
        return self._facts.tags

    @property
    def traceparent(self) -> str:
        """The span of this attempt, for whoever it calls."""
        return self._facts.traceparent

    @property
    def scheduled_for(self) -> datetime:
        """The fire time of a scheduled run, however late it is; the due time of any other."""
        return self._facts.scheduled_for or self._facts.due_at

    @property
    def due_at(self) -> datetime:
        """When it was to start."""
        return self._facts.due_at

    @property
    def started_at(self) -> datetime:
        """When this attempt began, by the clock of the service."""
        return self._facts.started_at

    @property
    def deadline(self) -> datetime | None:
        """When the attempt is stopped, by the clock of the service; None without a time limit."""
        limit = self._facts.timeout
        return None if limit is None else self._facts.started_at + limit

    @property
    def checkpoint_value(self) -> Any:
        """What an earlier attempt kept by `checkpoint`; None when there is nothing."""
        return self._facts.checkpoint

    @property
    def cancelled(self) -> bool:
        """Whether to end soon: somebody cancelled it, its time is up, or its lease is lost."""
        return self._voice.wants_end()

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Say how far it has come, from 0 to 1."""
        if not 0.0 <= fraction <= 1.0:
            raise ValueError(f"expected a fraction within 0 and 1, got {fraction}")
        told = None if message is None else message[:MESSAGE_LENGTH_MAX]
        self._voice.progress(100.0 * fraction, told)

    def checkpoint(self, value: Any) -> None:
        """Keep something for the next attempt to begin from; at most 64 KiB as JSON."""
        data = encode(value)
        if len(data) > CHECKPOINT_BYTES_MAX:
            raise ValueError(
                f"expected a checkpoint of at most {CHECKPOINT_BYTES_MAX} bytes, got {len(data)}"
            )
        self._voice.checkpoint(data)

    def heartbeat(self) -> None:
        """Raise `Cancelled` when the attempt should end; the lease itself needs no help."""
        if self.cancelled:
            raise Cancelled("asked to end")

    def stop(self, reason: str = "") -> None:
        """End here by raising `Cancelled`: the run is cancelled.

        It never returns; it is typed so that `return ctx.stop("…")` may be written anywhere.
        """
        raise Cancelled(reason)

    def once(self, key: str, *, connection: Any) -> "Once":
        """Take effect once: `with ctx.once("charge:7", connection=db) as first:`.

        `first` is true for whoever comes first with this key and commits. The key is kept in the
        table `betimes_inbox` of that database, in the transaction of the effect. A transaction
        that is open stays yours to end; otherwise one is begun, and ended with the block.
        """
        from betimes.sdk.once import Once  # noqa: PLC0415 -- few handlers need it

        return Once(connection, key, int((self._facts.started_at - EPOCH).total_seconds()))


current: ContextVar[Context | None] = ContextVar("betimes_context", default=None)
"""The context of the handler that runs here, for the logging bridge and for middleware."""


def current_context() -> Context | None:
    """The context of the attempt that this code runs in; None elsewhere."""
    return current.get()
