"""What the driver raises, as our own errors: the only place that knows SQLSTATE.

The table is by class (two characters) with exceptions by full code; a test holds it against every
exception the driver knows, so that none falls through. Texts of the server are kept as the cause
and never shown: they may quote rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from betimes.domain.errors import (
    AlreadyExists,
    Bug,
    Conflict,
    Contended,
    Invalid,
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
    "23503": Conflict,  # what it refers to is gone
    "23505": AlreadyExists,
    "25006": Unavailable,  # read-only: we are talking to a standby during a fail-over
    "25P03": Contended,  # idle in transaction for too long: the server has rolled back
    "25P04": Contended,  # transaction_timeout
    "40002": Bug,  # a deferred constraint of ours
    "40003": UnknownOutcome,
    "55000": Bug,
    "57014": Contended,  # statement_timeout: rolled back
}

SENTENCES: dict[type[SchedulerError], str] = {
    AlreadyExists: "something with this name or key exists already",
    Bug: "the database refused a statement of ours",
    Conflict: "something this refers to is gone",
    Contended: "the database was busy with the same rows; nothing was written",
    Invalid: "the database cannot hold one of the values",
    Overloaded: "the database has no room: connections, memory or disk",
    Unavailable: "the database is away",
    UnknownOutcome: "the connection was lost during a commit; it may have happened",
}

# What means "the connection is gone", whoever says so.
LOST = (
    ConnectionError,
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
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
    if committing and isinstance(fault, LOST):
        return _error(UnknownOutcome, fault)
    if isinstance(fault, asyncpg.PostgresError):
        return _error(kind_of(getattr(fault, "sqlstate", None) or "XX000"), fault)
    if isinstance(fault, LOST):
        return _error(Unavailable, fault)
    if isinstance(fault, asyncpg.InternalClientError):
        return _error(Bug, fault)
    return None


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


def _error(kind: type[SchedulerError], fault: BaseException) -> SchedulerError:
    error = kind(SENTENCES[kind])
    code = getattr(fault, "sqlstate", None) or type(fault).__name__
    error.add_note(f"{code}: {fault}")
    return error
