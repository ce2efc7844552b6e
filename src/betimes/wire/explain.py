"""Explanations as they are asked for and shown."""

from betimes.wire.base import Asked, Instant, Members, Shown


class ExplainJob(Asked):
    """About which fire time; without one, about the next."""

    at: Instant | None = None


class ExplainEither(Asked):
    """About a job and a fire time, or about a run."""

    job: str | None = None
    run: str | None = None
    at: Instant | None = None


class Fix(Shown):
    """What would help, and the call that does it."""

    text: str
    action: str | None


class Reason(Shown):
    """One thing that stands in the way, or explains what happened."""

    code: str
    summary: str
    blocking: bool
    since: Instant | None
    evidence: Members
    fix: Fix | None


class Decision(Shown):
    """A fire, or a range of them, that did not become a run."""

    at: Instant
    until: Instant | None
    fires: int
    code: str
    summary: str
    evidence: Members
    decided_at: Instant


class Explanation(Shown):
    """What will become of it, or has, and why."""

    subject: Members
    verdict: str
    eligible: bool
    summary: str
    reasons: list[Reason]
    ahead: int | None
    ahead_at_least: bool
    expected_at: Instant | None
    next_fire_at: Instant | None
    checked: list[str]
    history: list[Decision]
