"""Enqueue inside the caller's own transaction: it commits or vanishes with everything else there.

`Tx` calls the function of the service, which lies in the same database. `OutboxTx` writes a row
into the outbox of another database, for `betimes relay` to carry on.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from betimes.domain.errors import (
    BadSetting,
    Conflict,
    Forbidden,
    Invalid,
    OverQuota,
    Refused,
    TooLarge,
)
from betimes.outbox import insert_statement
from betimes.sdk import ambient
from betimes.sdk.connections import Door, Row, door_of
from betimes.sdk.handle import RunHandle
from betimes.sdk.options import seconds_of
from betimes.sdk.prepared import Prepared

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.sdk.task import Configured, Task

P = ParamSpec("P")
R = TypeVar("R")

REFUSALS: Mapping[str, type[Refused]] = {
    "BT400": Invalid,
    "BT403": Forbidden,
    "BT409": Conflict,
    "BT413": TooLarge,
    "BT422": Invalid,
    "BT429": OverQuota,
}
MISSING = frozenset({"42883", "3F000", "42501"})
"""No such function, no such schema, or no right to use them."""
TRACE_HEADER = "traceparent"
KEPT_SECONDS = 86_400


class Tx:
    """A transaction of the caller's in the database of the service."""

    def __init__(self, app: "App", connection: Any, tenant: str | None = None) -> None:
        self._app = app
        self._door = door_of(connection)
        self._tenant = tenant

    def enqueue(
        self, task: "Task[P, R, Any] | Configured[P, R]", *args: P.args, **kwargs: P.kwargs
    ) -> RunHandle[R]:
        """Ask for a run that is made when the transaction commits.

        While a run with the same dedupe key is active, this is that run; nothing ever fails or
        waits because of a key.
        """
        prepared = self._prepared(task, *args, **kwargs)
        with _refusals():
            row = _runner(self._door)(_call, self._words(prepared))
        return self._handle(prepared, row)

    async def aenqueue(
        self, task: "Task[P, R, Any] | Configured[P, R]", *args: P.args, **kwargs: P.kwargs
    ) -> RunHandle[R]:
        """The same over an async connection."""
        prepared = self._prepared(task, *args, **kwargs)
        with _refusals():
            row = await _arunner(self._door)(_call, self._words(prepared))
        return self._handle(prepared, row)

    def _prepared(
        self, task: "Task[P, R, Any] | Configured[P, R]", *args: P.args, **kwargs: P.kwargs
    ) -> Prepared[R]:
        prepared = task.prepare(*args, **kwargs)
        self._app._before(prepared)  # noqa: SLF001 -- the other way into the same app
        return prepared

    def _words(self, prepared: Prepared[Any]) -> tuple[str, str | None, str]:
        options = {**prepared.members, **_keyed(prepared)}
        if (trace := prepared.headers.get(TRACE_HEADER)) is not None:
            options["trace"] = trace
        if self._tenant is not None:
            options["tenant"] = self._tenant
        return _words(prepared, options)

    def _handle(self, prepared: Prepared[R], row: Row) -> RunHandle[R]:
        from betimes.wire.runs import RunMade  # noqa: PLC0415 -- only who calls needs it

        if row is None:
            raise Refused("expected one row from betimes.enqueue_v1, got none")
        made = RunMade(id=row[0], deduplicated=row[1])
        return self._app._made(prepared, made)  # noqa: SLF001 -- as above


class Noted(Generic[R]):
    """A run that was asked for in an outbox; it gets an id when the service hears of it."""

    def __init__(self, key: str, task: str) -> None:
        self.key = key
        """The id of the row, and the idempotency key of the request that will be made."""
        self._task = task

    def __repr__(self) -> str:
        return f"Noted({self.key!r}, task={self._task!r})"


class OutboxTx:
    """A transaction of the caller's in another database, which has the table of the outbox."""

    def __init__(self, app: "App", connection: Any) -> None:
        self._app = app
        self._door = door_of(connection)

    def enqueue(
        self, task: "Task[P, R, Any] | Configured[P, R]", *args: P.args, **kwargs: P.kwargs
    ) -> Noted[R]:
        """Ask for a run that the relay carries to the service after the commit."""
        prepared = task.prepare(*args, **kwargs)
        self._app._before(prepared)  # noqa: SLF001 -- the other way into the same app
        key = prepared.idempotency_key or ambient.new_key()
        _runner(self._door)(_insert, (key, *_noted(prepared)))
        return Noted(key, prepared.task.name)

    async def aenqueue(
        self, task: "Task[P, R, Any] | Configured[P, R]", *args: P.args, **kwargs: P.kwargs
    ) -> Noted[R]:
        """The same over an async connection."""
        prepared = task.prepare(*args, **kwargs)
        self._app._before(prepared)  # noqa: SLF001 -- the other way into the same app
        key = prepared.idempotency_key or ambient.new_key()
        await _arunner(self._door)(_insert, (key, *_noted(prepared)))
        return Noted(key, prepared.task.name)


def _call(marks: tuple[str, ...]) -> str:
    # Texts on the way: a caller's own codec for jsonb would encode them once more.
    handler, payload, options = (f"CAST({mark} AS text)" for mark in marks)
    return (
        "SELECT run_id, deduplicated FROM betimes.enqueue_v1("  # noqa: S608 -- only marks go in
        f"{handler}, CAST({payload} AS jsonb), CAST({options} AS jsonb))"
    )


def _insert(marks: tuple[str, ...]) -> str:
    first, second, third, fourth = marks
    return insert_statement((first, second, third, fourth))


def _words(prepared: Prepared[Any], options: Mapping[str, Any]) -> tuple[str, str | None, str]:
    payload = None if prepared.payload is None else prepared.payload.decode()
    return prepared.task.name, payload, msgspec.json.encode(options).decode()


def _noted(prepared: Prepared[Any]) -> tuple[str, str | None, str]:
    """As it is written down; a delay counts from now, not from whenever the relay comes by."""
    options = dict(prepared.members)
    if (delay := options.pop("delay", None)) is not None:
        at: datetime = ambient.wall_clock() + timedelta(seconds=seconds_of(delay))
        options["at"] = at.isoformat()
    return _words(prepared, options)


def _keyed(prepared: Prepared[Any]) -> dict[str, Any]:
    """An idempotency key means in SQL what it means to the API: for a day, the same run."""
    if prepared.idempotency_key is None:
        return {}
    if prepared.members.get("dedupe") or prepared.members.get("dedupe_key"):
        raise Invalid("expected a dedupe key or an idempotency key in a transaction, got both")
    key = f"idempotency:{prepared.idempotency_key}"
    return {"dedupe": {"key": key, "window": KEPT_SECONDS}}


def _runner(door: Door) -> Callable[..., Row]:
    if door.run is None:
        raise Invalid("expected `aenqueue` for a connection that is awaited, got `enqueue`")
    return door.run


def _arunner(door: Door) -> Callable[..., Any]:
    if door.arun is None:
        raise Invalid("expected `enqueue` for a connection that blocks, got `aenqueue`")
    return door.arun


@contextmanager
def _refusals() -> Iterator[None]:
    """What the function refuses, as our own errors; everything else stays the library's."""
    try:
        yield
    except Exception as error:
        fault = _fault(error)
        state = str(getattr(fault, "sqlstate", ""))
        if state in MISSING:
            raise BadSetting(
                "this database role cannot call betimes.enqueue_v1 here; on the database of the "
                "service, an administrator runs: betimes producer add"
            ) from error
        if state not in REFUSALS:
            raise
        sentence, pointer = _told(fault)
        raise REFUSALS[state](sentence, pointer=pointer) from error


def _fault(error: BaseException) -> BaseException | None:
    """The driver's own error: SQLAlchemy and Django wrap it, some of them twice."""
    seen: BaseException | None = error
    while seen is not None and not getattr(seen, "sqlstate", None):
        seen = getattr(seen, "orig", None) or seen.__cause__
    return seen


def _told(fault: Any) -> tuple[str, str]:
    told = getattr(fault, "diag", fault)
    sentence = getattr(told, "message_primary", None) or getattr(fault, "message", None)
    if sentence is None:
        # SQLAlchemy's own wrapping of asyncpg keeps the error it wraps as the cause.
        return _told(fault.__cause__) if fault.__cause__ is not None else (str(fault), "")
    pointer = getattr(told, "message_detail", None) or getattr(fault, "detail", None)
    return str(sentence), str(pointer or "")
