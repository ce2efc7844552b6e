"""What a handler raises to say what is to become of its run."""

from datetime import datetime, timedelta

Pause = timedelta | str | float
"""A length of time: a timedelta, a text such as `90s` or `PT15M`, or seconds."""


class Control(Exception):
    """The root of what is raised on purpose by handlers."""


class Retry(Control):
    """Try again, not before `after`; counts as a failed attempt.

    The retry policy still rules: a wish lengthens its pause, up to the policy's maximum.
    """

    def __init__(self, reason: str = "", *, after: Pause | None = None) -> None:
        super().__init__(reason or "asked to be tried again")
        self.after = after


class PermanentError(Control):
    """It will never work: no further attempt is made and the run is dead at once."""


class Snooze(Control):
    """Call me again later; no attempt is counted. Say `until` or `after`."""

    def __init__(
        self, reason: str = "", *, until: datetime | None = None, after: Pause | None = None
    ) -> None:
        if (until is None) == (after is None):
            raise TypeError("expected until or after, one of them")
        if until is not None and until.tzinfo is None:
            raise ValueError(f"expected a time with an offset, got {until}")
        super().__init__(reason or "snoozed")
        self.until = until
        self.after = after


class Cancelled(Control):
    """Stop here: the run ends as cancelled."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
