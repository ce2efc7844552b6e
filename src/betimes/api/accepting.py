"""What the caller takes as an answer: the Accept header, as RFC 9110 reads it."""

from collections.abc import Sequence

from betimes.api.call import Request
from betimes.api.problem import Trouble

HEADER = b"accept"
ANYTHING = "*/*"
RANGES_MAX = 100
"""So many are looked at; browsers send less than ten."""


def check_acceptable(request: Request, offers: Sequence[str]) -> None:
    """Refuse to begin what could only be answered in a form that the caller does not take."""
    if offers and offers[0] != ANYTHING and chosen(request, offers) is None:
        said = request.header(HEADER) or ""
        raise Trouble(
            "not_acceptable",
            f"expected an Accept that takes {' or '.join(offers)}, got {said[:100]!r}",
        )


def chosen(request: Request, offers: Sequence[str]) -> str | None:
    """The form the caller likes best, the first of equals; None where none is taken."""
    said = request.headers.get(HEADER)
    # Of a header that came more than once we have one line only, which excludes nothing.
    if said is None or said == b"*/*" or HEADER in request.doubled:
        return offers[0]
    ranges = _ranges(said.decode("latin-1"))
    if not ranges:
        return offers[0]
    best = max(offers, key=lambda offer: _quality(ranges, offer))
    return best if _quality(ranges, best) > 0 else None


def _ranges(said: str) -> dict[str, float]:
    """The worth of each media range; parameters other than `q` are not told apart."""
    found: dict[str, float] = {}
    for part in said.split(",", RANGES_MAX)[:RANGES_MAX]:
        name, *parameters = part.split(";")
        name = name.strip().lower()
        if name:
            found[name] = max(found.get(name, 0.0), _worth(parameters))
    return found


def _worth(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def _quality(ranges: dict[str, float], offer: str) -> float:
    """What the closest range says of a form: itself, its kind, anything."""
    kind = offer.partition("/")[0]
    for name in (offer, f"{kind}/*", ANYTHING, "*"):
        if name in ranges:
            return ranges[name]
    return 0.0
