"""Durations as people write them: `15s`, `1h30m`, `250ms`, `PT15M`, `900` (seconds)."""

import re
from datetime import timedelta
from decimal import Decimal

UNITS = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3_600),
    "d": Decimal(86_400),
    "w": Decimal(604_800),
}
LENGTH_MAX = 64
NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
PLAIN = re.compile(NUMBER)
PART = re.compile(rf"({NUMBER})\s*(ms|[smhdw])")
PARTS = re.compile(rf"(?:{NUMBER}\s*(?:ms|[smhdw])\s*)+")
# Years and months are left out on purpose: they have no fixed length.
ISO = re.compile(
    rf"P(?=.)(?:({NUMBER})W)?(?:({NUMBER})D)?"
    rf"(?:T(?=.)(?:({NUMBER})H)?(?:({NUMBER})M)?(?:({NUMBER})S)?)?"
)


def read_duration(text: str) -> timedelta:
    """The duration a text means; ValueError when it means none."""
    trimmed = text.strip()
    if len(trimmed) <= LENGTH_MAX:
        if PLAIN.fullmatch(trimmed):
            return _lasting(Decimal(trimmed))
        if PARTS.fullmatch(trimmed.lower()):
            parts = PART.findall(trimmed.lower())
            return _lasting(sum((Decimal(n) * UNITS[unit] for n, unit in parts), Decimal(0)))
        if iso := ISO.fullmatch(trimmed.upper()):
            counts = zip(iso.groups("0"), "wdhms", strict=True)
            return _lasting(sum((Decimal(n) * UNITS[unit] for n, unit in counts), Decimal(0)))
    raise ValueError("not a duration")


def show_duration(duration: timedelta) -> str:
    """The shortest text that reads back as the same duration."""
    microseconds = duration // timedelta(microseconds=1)
    for unit in ("d", "h", "m", "s", "ms"):
        size = int(UNITS[unit] * 1_000_000)
        if microseconds and microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return f"{duration.total_seconds():f}".rstrip("0").rstrip(".") + "s"


def _lasting(seconds: Decimal) -> timedelta:
    try:
        return timedelta(microseconds=int(seconds * 1_000_000))
    except OverflowError as error:
        raise ValueError("not a duration") from error
