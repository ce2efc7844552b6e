"""Our own token in requests: what it is sent as, and how it is kept out of evidence."""

from betimes.target.answer import Answer, NoAnswer, Request
from betimes.target.redact import Veil

LEASE_LINE, LEASE_MARK = "betimes-lease: ", "lea_"
"""The header with the token that may report the end of an attempt, and how such tokens begin."""
LEASE_PREFIX = LEASE_MARK.encode()


def veil_for(veil: Veil, request: Request, result: Answer | NoAnswer, last_url: str | None) -> Veil:
    """What hides secrets, and our own token where a target sends back what it was sent.

    Few do, so the token is looked for by its first letters before a veil is made for it.
    """
    if isinstance(result, NoAnswer):
        return veil
    echoed = (
        LEASE_PREFIX in result.body
        or LEASE_MARK in (last_url or "")
        or any(LEASE_MARK in value for _, value in result.headers)
    )
    if not echoed:
        return veil
    tokens = [line.removeprefix(LEASE_LINE) for line in request.headers if LEASE_LINE in line]
    return veil.and_also(*tokens)
