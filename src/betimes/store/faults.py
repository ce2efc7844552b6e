"""What the driver raises, as our own errors: the only place that knows SQLSTATE.

The table is by class (two characters) with exceptions by full code; a test holds it against every
exception the driver knows, so that none falls through. Texts of the server are kept as the cause
and never shown: they may quote rows.

A timeout or an error of the operating system may also come from the code that was given a
connection. It is the database's only if the driver raised it, which its traceback tells.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

import asyncpg

from betimes.domain.errors import (
    AlreadyExists,
    BadSetting,
    Bug,
    Conflict,
    Contended,
    Invalid,
    OutOfTime,
    Overloaded,
    SchedulerError,
    Unavailable,
    UnknownOutcome,
)

BY_CLASS: dict[str, type[SchedulerError]] = {
    "00": Bug,  # successful completion, as an error
    "01": Bug,  # warnings
    "02": Bug,  # no data
    "03": Bug,  # statement not yet complete
    "08": Unavailable,  # connection
    "09": Bug,  # triggered action
    "0A": Bug,  # feature not supported
    "0B": Bug,  # transaction initiation
    "0F": Bug,  # locator
    "0L": Bug,  # grantor
    "0P": Bug,  # role specification
    "0Z": Bug,  # diagnostics
    "10": Bug,  # XQuery
    "20": Bug,  # case not found
    "21": Bug,  # cardinality
    "22": Invalid,  # data: a value that PostgreSQL cannot hold
    "23": Bug,  # a constraint of ours
    "24": Bug,  # cursor state
    "25": Bug,  # transaction state
    "26": Bug,  # prepared statement gone: a pooler that was not declared
    "27": Bug,  # triggered data change
    "28": Unavailable,  # authorization at connect
    "2B": Bug,  # dependent privileges
    "2D": Bug,  # transaction termination
    "2F": Bug,  # SQL routine
    "34": Bug,  # cursor name
    "38": Bug,  # external routine
    "39": Bug,  # external routine invocation
    "3B": Bug,  # savepoint
    "3D": Unavailable,  # no such database
    "3F": Bug,  # no such schema
    "40": Contended,  # transaction rolled back
    "42": Bug,  # syntax, names, privileges
    "44": Bug,  # with check option
    "53": Overloaded,  # connections, memory, disk
    "54": Invalid,  # program limit: too complex
    "55": Contended,  # object not in the required state
    "57": Unavailable,  # operator intervention
    "58": Unavailable,  # input/output
    "72": Contended,  # snapshot too old
    "F0": Unavailable,  # configuration file
    "HV": Bug,  # foreign data
    "P0": Bug,  # PL/pgSQL
    "XX": Bug,  # internal
}

BY_CODE: dict[str, type[SchedulerError]] = {
    # How a transaction pooler answers those who expect a session.
    "08P01": BadSetting,  # it refuses a setting of the session
    "26000": BadSetting,  # another server process, so no such prepared statement
    "42P05": BadSetting,  # another client's prepared statement of the same name
    "23503": Conflict,  # what it refers to is gone
    "23505": AlreadyExists,
    "25006": Unavailable,  # read-only: we are talking to a standby during a fail-over
    "25P03": OutOfTime,  # idle in transaction for too long: the server has rolled back
    "25P04": OutOfTime,  # transaction_timeout
    "40002": Bug,  # a deferred constraint of ours
    "40003": UnknownOutcome,
    "55000": Bug,
    "57014": OutOfTime,  # statement_timeout: rolled back
}

SENTENCES: dict[type[SchedulerError], str] = {
    BadSetting: (
        "the database cannot be used as it was told; if a pooler such as pgbouncer stands before "
        "it, its address needs pgbouncer=true"
    ),
    AlreadyExists: "something with this name or key exists already",
    Bug: "the database refused a statement of ours",
    Conflict: "something this refers to is gone",
    Contended: "the database was busy with the same rows; nothing was written",
    Invalid: "the database cannot hold one of the values",
    OutOfTime: "the transaction took longer than it may; nothing was written",
    Overloaded: "the database has no room: connections, memory or disk",
    Unavailable: "the database is away",
    UnknownOutcome: "the connection was lost during a commit; it may have happened",
}

# What means "the connection is gone". Timeouts and connection errors are errors of the OS, too.
LOST = (
    OSError,
    asyncpg.InterfaceError,
    # Its state machine is confused, for example by a server that says goodbye to an idle session.
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)


def translate(fault: BaseException, *, committing: bool = False) -> SchedulerError | None:
    """Our error for what the driver raised, or None if it is not the driver's.

    While a commit is on its way, a lost connection means that we do not know.
    """
    if isinstance(fault, SchedulerError):
        return fault
    if not _is_of_driver(fault):
        return None
    if isinstance(fault, asyncpg.ClientConfigurationError):
        return _error(BadSetting, fault)
    if committing and isinstance(fault, LOST):
        return _error(UnknownOutcome, fault)
    if isinstance(fault, asyncpg.PostgresError):
        return _error(kind_of(fault.sqlstate or "XX000"), fault)
    return _error(Unavailable, fault)


@contextmanager
def translated(*, committing: bool = False) -> Iterator[None]:
    """Let nothing of the driver's out of this block."""
    try:
        yield
    except Exception as fault:
        error = translate(fault, committing=committing)
        if error is None or error is fault:
            raise
        raise error from fault


def kind_of(sqlstate: str) -> type[SchedulerError]:
    """The class of our error for a code; an unknown class is a bug worth seeing."""
    return BY_CODE.get(sqlstate) or BY_CLASS.get(sqlstate[:2], Bug)


def _is_of_driver(fault: BaseException) -> bool:
    if isinstance(
        fault, asyncpg.PostgresError | asyncpg.InterfaceError | asyncpg.InternalClientError
    ):
        return True
    return isinstance(fault, OSError) and any(
        str(frame.f_globals.get("__name__", "")).startswith("asyncpg.")
        for frame, _ in walk_tb(fault.__traceback__)
    )


def _error(kind: type[SchedulerError], fault: BaseException) -> SchedulerError:
    error = kind(SENTENCES[kind])
    code = getattr(fault, "sqlstate", None)
    error.add_note(f"SQLSTATE {code}" if code else type(fault).__name__)
    return error
