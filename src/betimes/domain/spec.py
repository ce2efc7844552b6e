"""What to do for a run: the part of a job's definition, or of an ad-hoc run, that a worker needs.

Options are stored as JSON with durations in whole milliseconds; these functions are the only ones
that know the names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from json import loads
from typing import Any

from betimes.domain.callback import wants_success
from betimes.domain.kept import kept_by_text
from betimes.domain.retry import Backoff, Jitter, RetryPolicy

MILLISECOND = timedelta(milliseconds=1)
DEADLINES_BYTES_MAX = 8 << 20
NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Immutable for one revision of a job, so a worker may keep it."""

    handler: str | None
    payload: bytes | None
    target: Mapping[str, Any] = field(default_factory=dict)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    start_deadline: timedelta | None = None
    fixed_delay: timedelta | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> str | None:
        """What a worker must have to do it: the handler, or a way to the kind of target."""
        if self.handler is not None:
            return self.handler
        return target_need(self.target["type"]) if self.target else None

    @property
    def tells_success(self) -> bool:
        """Whether somebody is called back when a run ends well."""
        return wants_success(self.options)

    @property
    def is_plain(self) -> bool:
        """Whether a success has no consequences beyond the run itself."""
        return self.fixed_delay is None and not self.tells_success


def target_need(kind: str) -> str:
    """How parcels name a kind of target; no handler begins with a colon."""
    return f":{kind}"


def retry_to_json(policy: RetryPolicy) -> dict[str, Any]:
    """Only what differs from the default, so that most jobs store nothing."""
    default = RetryPolicy()
    every = {
        "max_attempts": policy.max_attempts,
        "backoff": policy.backoff.value,
        "initial_ms": to_ms(policy.initial),
        "factor": policy.factor,
        "max_ms": to_ms(policy.max),
        "delays_ms": [to_ms(delay) for delay in policy.delays],
        "jitter": policy.jitter.value,
        "max_elapsed_ms": None if policy.max_elapsed is None else to_ms(policy.max_elapsed),
        "retry_on": sorted(policy.retry_on),
        "give_up_on": sorted(policy.give_up_on),
    }
    if policy == default:
        return {}
    return {name: value for name, value in every.items() if value not in (None, [])}


def retry_from_json(stored: Mapping[str, Any]) -> RetryPolicy:
    """The policy that `retry_to_json` wrote."""
    default = RetryPolicy()
    elapsed = stored.get("max_elapsed_ms")
    return RetryPolicy(
        max_attempts=stored.get("max_attempts", default.max_attempts),
        backoff=Backoff(stored.get("backoff", default.backoff)),
        initial=from_ms(stored.get("initial_ms", to_ms(default.initial))),
        factor=stored.get("factor", default.factor),
        max=from_ms(stored.get("max_ms", to_ms(default.max))),
        delays=tuple(from_ms(delay) for delay in stored.get("delays_ms", ())),
        jitter=Jitter(stored.get("jitter", default.jitter)),
        max_elapsed=None if elapsed is None else from_ms(elapsed),
        retry_on=frozenset(stored.get("retry_on", ())),
        give_up_on=frozenset(stored.get("give_up_on", ())),
    )


def spec_from_json(
    *,
    handler: str | None,
    payload: bytes | None,
    target: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    fixed_delay: timedelta | None = None,
) -> RunSpec:
    """Read what the store keeps about a job or an ad-hoc run; schedules are read by their room."""
    options = options or NO_OPTIONS
    return RunSpec(
        handler=handler,
        payload=payload,
        target=target or {},
        retry=retry_from_json(options.get("retry") or {}),
        timeout=_optional(options, "timeout_ms"),
        start_deadline=start_deadline_of(options),
        fixed_delay=fixed_delay,
        options=options,
    )


def with_retry(spec: RunSpec, otherwise: RetryPolicy | None) -> RunSpec:
    """The same, with another way to retry if it has none of its own."""
    if otherwise is None or spec.options.get("retry"):
        return spec
    return replace(spec, retry=otherwise)


def to_ms(duration: timedelta) -> int:
    """Whole milliseconds."""
    return duration // MILLISECOND


def from_ms(milliseconds: int) -> timedelta:
    """A duration from whole milliseconds."""
    return milliseconds * MILLISECOND


def start_deadline_of(options: Mapping[str, Any]) -> timedelta | None:
    """How long after it is due a run may be handed out for the first time."""
    return _optional(options, "start_deadline_ms")


@kept_by_text(DEADLINES_BYTES_MAX, factor=0)
def start_deadline_of_text(options: str | None) -> timedelta | None:
    """The same from stored options; equal texts are read once."""
    if not options or "start_deadline_ms" not in options:
        return None
    return start_deadline_of(loads(options))


def _optional(options: Mapping[str, Any], name: str) -> timedelta | None:
    value = options.get(name)
    return None if value is None else from_ms(value)
