"""Units that bounds of settings are written in."""

from datetime import timedelta

MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
PORT_MAX = 65_535
