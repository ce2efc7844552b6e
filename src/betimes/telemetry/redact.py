"""What may leave the process in a log line: no secrets, no control characters, nothing endless.

Secrets are found twice: by the name of their key and by the shape of their value. Control
characters are escaped, so that no value can end a line, start a forged one or move a cursor.
"""

import re
from collections.abc import Mapping
from datetime import date, timedelta

SECRET_NAME = re.compile(
    r"(?i)(passw(or)?d|secret|token|authorization|api_?key|cookie|credential|private_?key|signature)"
)
SECRET_SHAPES = (
    (re.compile(r"\bbtm_[0-9A-Za-z_\-]{4,}"), "btm_[redacted]"),
    (re.compile(r"\bwhsec_[0-9A-Za-z+/=_\-]{4,}"), "whsec_[redacted]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[0-9A-Za-z+/=._~\-]{4,}"), r"\1 [redacted]"),
    (re.compile(r"(?<=://)([^/?#@:\s]*):[^/?#\s]*@"), r"\1:[redacted]@"),
    (re.compile(r"(?i)\b((?:ssl)?password=)[^&\s]+"), r"\1[redacted]"),
)
REDACTED = "[redacted]"
LENGTH_MAX = 8_192
SEARCHED_MAX = 8 * LENGTH_MAX  # so that no secret is cut in two and then shown
ITEMS_MAX = 100
DEPTH_MAX = 5

_CONTROL = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES = {code: f"\\u{code:04x}" for code in _CONTROL} | {
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


def safe_text(text: str) -> str:
    """One line without secrets, of bounded length."""
    clean = text[:SEARCHED_MAX]
    for shape, instead in SECRET_SHAPES:
        clean = shape.sub(instead, clean)
    if len(clean) > LENGTH_MAX:
        clean = f"{clean[:LENGTH_MAX]}… ({len(text)} characters)"
    # A lone surrogate cannot be written as UTF-8.
    return clean.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")


def safe_mapping(values: Mapping[str, object]) -> dict[str, Plain]:
    """Names and values as they may be written."""
    return {safe_text(name): _safe(name, value, depth=1) for name, value in values.items()}


def _safe(name: str, value: object, *, depth: int) -> Plain:
    if value is None or isinstance(value, bool):
        return value
    if SECRET_NAME.search(name):
        return REDACTED
    if depth < DEPTH_MAX and isinstance(value, Mapping):
        kept = list(value.items())[:ITEMS_MAX]
        return {safe_text(str(key)): _safe(str(key), item, depth=depth + 1) for key, item in kept}
    if depth < DEPTH_MAX and isinstance(value, list | tuple | set | frozenset):
        return [_safe(name, item, depth=depth + 1) for item in list(value)[:ITEMS_MAX]]
    return _single(value)


def _single(value: object) -> str | int | float:
    if isinstance(value, int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return safe_text(str(value))
