"""Reading what is asked for, by the shapes of the API and with its words."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import Invalid
from betimes.domain.retry import Backoff, Jitter, RetryPolicy
from betimes.schedule.duration import read_duration
from betimes.testing.harness.run import Terms
from betimes.wire.jobs import Retry
from betimes.wire.runs import NewRun

NAMES = frozenset(NewRun.__struct_fields__)


def read_run(body: Mapping[str, Any]) -> NewRun:
    """A body of `POST /v1/runs`, checked as the service checks it."""
    plain = msgspec.json.decode(msgspec.json.encode(body))
    try:
        return msgspec.convert(plain, NewRun)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from error


def terms_of(asked: NewRun) -> Terms:
    """Everything about a run but its time."""
    concurrency = asked.concurrency
    return Terms(
        queue=asked.queue,
        priority=asked.priority,
        retry=RetryPolicy() if asked.retry is None else policy_of(asked.retry),
        timeout=maybe_span(asked.timeout),
        start_deadline=maybe_span(asked.start_deadline),
        tags=asked.tags,
        gate=None if concurrency is None else concurrency.key,
        gate_most=1 if concurrency is None else concurrency.limit or 1,
        skips_when_full=concurrency is not None and concurrency.on_limit == "skip",
        dedupe=_dedupe(asked),
    )


def due_of(asked: NewRun, terms: Terms, now: datetime) -> datetime:
    """When it is due; what has passed means now, and debounce waits for its window."""
    if asked.at is not None and asked.delay is not None:
        raise Invalid("expected a time or a delay, got both", pointer="/delay")
    if asked.at is not None:
        return max(now, datetime.fromisoformat(asked.at).astimezone(UTC))
    if asked.delay is not None:
        return now + span(asked.delay)
    dedupe = terms.dedupe
    if dedupe is not None and dedupe.form is DedupeForm.DEBOUNCE and dedupe.window is not None:
        return now + dedupe.window
    return now


def policy_of(asked: Retry) -> RetryPolicy:
    """A retry policy as a value."""
    return RetryPolicy(
        max_attempts=asked.max_attempts,
        backoff=Backoff(asked.backoff),
        initial=span(asked.initial),
        factor=asked.factor,
        max=span(asked.max),
        delays=tuple(span(delay) for delay in asked.delays),
        jitter=Jitter(asked.jitter),
        max_elapsed=maybe_span(asked.max_elapsed),
        retry_on=frozenset(asked.retry_on),
        give_up_on=frozenset(asked.give_up_on),
    )


def span(source: "str | float | timedelta") -> timedelta:
    """A length of time."""
    if isinstance(source, timedelta):
        return source
    return timedelta(microseconds=read_duration(source).elapsed())


def maybe_span(source: str | float | None) -> timedelta | None:
    """The same for what may be missing."""
    return None if source is None else span(source)


def instant(source: str | datetime) -> datetime:
    """A moment with its offset."""
    found = datetime.fromisoformat(source) if isinstance(source, str) else source
    if found.tzinfo is None:
        raise ValueError(f"expected a time with an offset, such as 2026-03-28T00:00Z, got {source}")
    return found.astimezone(UTC)


def _dedupe(asked: NewRun) -> Dedupe | None:
    if asked.dedupe is None:
        return None if asked.dedupe_key is None else Dedupe(key=asked.dedupe_key)
    if asked.dedupe_key is not None:
        raise Invalid("expected dedupe or dedupe_key, got both", pointer="/dedupe_key")
    return Dedupe(
        key=asked.dedupe.key,
        window=maybe_span(asked.dedupe.window),
        form=DedupeForm(asked.dedupe.form),
    )
