"""The error tree.

SchedulerError
├─ Refused               the caller can fix it; has a stable code and a sentence
│   ├─ Invalid           what was said makes no sense
│   │   ├─ BadSchedule   BadZone · NeverFires · TooExpensive · AmbiguousText
│   │   ├─ BadTarget
│   │   ├─ BadSetting
│   │   ├─ CyclicGraph
│   │   └─ TooLarge
│   ├─ NotFound
│   ├─ Conflict          AlreadyExists · VersionMismatch · IdempotencyMismatch · IllegalTransition
│   ├─ OverQuota
│   └─ Forbidden
├─ FencedOut             we no longer own what we tried to write: step down, never retry
│   └─ LeaseOver         found out in time: nothing was sent or begun
├─ Unavailable           the store or a peer is away: retry with backoff
│   ├─ Contended         deadlock or serialization: the transaction left no trace, repeat it
│   │   └─ OutOfTime     it took longer than we let it: do less, or later
│   ├─ UnknownOutcome    the connection died during a commit: it may have happened
│   └─ Overloaded        no room now: a pool, a queue or the disk is full
├─ Locked                what is sealed does not open with the keys that are here
└─ Bug                   an invariant is broken; let it crash and be seen

What happened to a *run* is never in this tree; that is an `Outcome` value.
"""

from typing import ClassVar, Self


class SchedulerError(Exception):
    """The root of everything this package raises on purpose."""

    def copy(self) -> Self:
        """One of its own for each who hears of it: on its way up, an error is told where it was."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        other.__cause__ = self.__cause__
        return other


class Refused(SchedulerError):
    """The caller can fix it.

    `code` is stable and machine-readable; the sentence says what was expected and what was got;
    `pointer` is a JSON pointer to the offending member, empty when the whole request is meant.
    """

    default_code: ClassVar[str] = "refused"

    def __init__(self, sentence: str, *, code: str | None = None, pointer: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code or self.default_code
        self.pointer = pointer


class Invalid(Refused):
    """What was said makes no sense."""

    default_code = "invalid_parameter"


class BadSchedule(Invalid):
    """A schedule that cannot be read or would not behave."""

    default_code = "invalid_schedule"


class BadZone(BadSchedule):
    """A time zone the pinned tzdata does not know."""

    default_code = "unknown_timezone"


class NeverFires(BadSchedule):
    """A well-formed schedule without a single fire time."""

    default_code = "schedule_never_fires"


class TooExpensive(BadSchedule):
    """A schedule whose evaluation takes more steps than one may cost."""

    default_code = "schedule_too_expensive"


class AmbiguousText(BadSchedule):
    """Plain words with more than one reading; `alternatives` names them.

    Where `are_readings` is false, they are only examples of what can be said instead.
    """

    default_code = "ambiguous_text"

    def __init__(
        self,
        sentence: str,
        *,
        alternatives: tuple[str, ...],
        pointer: str = "",
        are_readings: bool = True,
    ) -> None:
        super().__init__(sentence, pointer=pointer)
        self.alternatives = alternatives
        self.are_readings = are_readings


class BadTarget(Invalid):
    """A target that may not or cannot be called."""

    default_code = "url_not_allowed"


class BadSetting(Invalid):
    """A configuration value that is not what its key expects."""

    default_code = "bad_setting"


class CyclicGraph(Invalid):
    """A workflow whose nodes wait for each other; `cycle` names them, the first one again last."""

    default_code = "workflow_cycle"

    def __init__(self, sentence: str, *, cycle: tuple[str, ...], pointer: str = "") -> None:
        super().__init__(sentence, pointer=pointer)
        self.cycle = cycle


class TooLarge(Invalid):
    """More than the documented maximum."""

    default_code = "payload_too_large"


class NotFound(Refused):
    """No such thing, or none that the caller may know of."""

    default_code = "not_found"


class Conflict(Refused):
    """The request is fine, the state of the world is not."""

    default_code = "conflict"


class AlreadyExists(Conflict):
    """The name or key is taken."""

    default_code = "already_exists"


class VersionMismatch(Conflict):
    """Somebody else edited the definition first."""

    default_code = "precondition_failed"


class IdempotencyMismatch(Conflict):
    """The idempotency key was used before, for another request."""

    default_code = "idempotency_key_reused"


class IllegalTransition(Conflict):
    """The state machine has no such edge."""

    default_code = "invalid_state"


class OverQuota(Refused):
    """The tenant has used up what it was given."""

    default_code = "quota_exceeded"


class Forbidden(Refused):
    """The caller is known and may not do this."""

    default_code = "scope_missing"


class FencedOut(SchedulerError):
    """Our epoch or fence is no longer the current one: step down, never retry."""


class LeaseOver(FencedOut):
    """A lease can no longer be trusted, and nothing was sent or begun under it."""


class Unavailable(SchedulerError):
    """The store or a peer is away; retry with backoff."""


class Contended(Unavailable):
    """Deadlock, serialization failure or lock timeout: nothing was written, repeat it."""


class OutOfTime(Contended):
    """A time limit of ours has passed: nothing was written; the store itself is there."""


class UnknownOutcome(Unavailable):
    """The connection died while a commit was on its way: it may or may not have happened."""


class Overloaded(Unavailable):
    """There is no room right now: connections, disk or memory."""


class Locked(SchedulerError):
    """What is sealed does not open with the keys that are here."""


class Bug(SchedulerError):
    """An invariant of ours is broken."""
