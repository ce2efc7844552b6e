"""How long to wait before trying again."""

from datetime import timedelta

DOUBLINGS_MAX = 30


def full_jitter(failures: int, *, first: timedelta, most: timedelta, roll: float) -> timedelta:
    """Anything from nothing to `first` doubled with each failure in a row, at most `most`.

    Full jitter: spreading the whole wait keeps those who failed together from returning together.
    """
    doublings = min(max(failures - 1, 0), DOUBLINGS_MAX)
    # In seconds, because a timedelta doubled that often may be more than a timedelta can hold.
    ceiling = min(first.total_seconds() * 2.0**doublings, most.total_seconds())
    return timedelta(seconds=ceiling * roll)
