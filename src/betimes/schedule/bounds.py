"""Every maximum of the room, in one place.

Searches end, inputs are measured before they are read, and nothing grows without a named limit.
"""

EVALUATION_STEPS_MAX = 8_000
"""Steps that one evaluation may take; a step is about a microsecond of work, see `budget`."""

EXPRESSION_LENGTH_MAX = 256
"""Characters in a cron expression, an interval, a phrase; checked before parsing."""

RECURRENCE_LENGTH_MAX = 16_384
"""Characters in an RFC 5545 text, which may carry lists of dates."""

RECURRENCE_DATES_MAX = 500
"""RDATE and EXDATE values in one rule."""

RECURRENCE_COUNT_MAX = 100_000
"""COUNT in a rule; its occurrences are numbered from DTSTART."""

CALENDAR_TEXT_LENGTH_MAX = 1_048_576
"""Characters in an imported iCalendar file."""

CALENDAR_RANGES_MAX = 10_000
CALENDAR_RULES_MAX = 500
"""Date ranges in one named calendar."""

UNION_MEMBERS_MAX = 32
"""Schedules directly inside one union."""

UNION_DEPTH_MAX = 4
"""Unions inside unions."""

MAX_FIRES_MAX = 1_000_000_000
"""The largest `max_fires`."""

FIRES_MAX = 10_000
"""Fires returned by one call unless the caller says otherwise."""

YEAR_FIRST = 1970
"""The first year a cron year field may name, and the base of its steps."""

YEAR_LAST = 2199
"""The last year of every search."""

SECOND = 1_000_000
"""Microseconds in a second: instants are whole microseconds since 1970-01-01T00:00:00Z."""

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY_SECONDS = 86_400
DAY = DAY_SECONDS * SECOND

PERIOD_MIN = SECOND
"""The shortest period of a rate."""
