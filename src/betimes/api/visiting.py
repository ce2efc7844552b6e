"""Browsers: the cookie of a session, and what guards it against pages of others."""

import hmac
from http.cookies import CookieError, SimpleCookie

from betimes.api.call import Request
from betimes.api.problem import Trouble
from betimes.api.service import Service
from betimes.ops.credentials import Unknown
from betimes.ops.keys import Caller

COOKIE = "__Host-session"
CSRF_HEADER = b"betimes-csrf"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})
TOKEN_LENGTH_MAX = 100


def session_cookie(request: Request) -> str | None:
    """The token of a session, if the browser sent one."""
    said = request.header(b"cookie")
    if said is None or COOKIE not in said:
        return None
    try:
        found = SimpleCookie(said).get(COOKIE)
    except CookieError:
        return None
    return found.value[:TOKEN_LENGTH_MAX] if found is not None else None


def set_cookie(token: str, seconds: int) -> str:
    """The cookie as a browser keeps it: for this host alone, out of reach of scripts."""
    return f"{COOKIE}={token}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}"


async def visitor(service: Service, request: Request, token: str) -> Caller:
    """Who signed in with the cookie; a request that changes something must be one of our pages'."""
    try:
        caller = await service.sessions.caller(token, request.address)
    except Unknown as error:
        service.admission.note_failure(request.address)
        raise Trouble(error.code, error.sentence) from None
    if request.method not in SAFE:
        _check_origin(service, request, token)
    return caller


def _check_origin(service: Service, request: Request, token: str) -> None:
    site = request.header(b"sec-fetch-site")
    word = request.header(CSRF_HEADER) or ""
    known = service.sessions.csrf_of(token)
    same_site = site is None or site in OWN_SITES
    if not same_site or not hmac.compare_digest(word.encode(), known.encode()):
        raise Trouble(
            "csrf_failed", "expected the session's word in Betimes-Csrf, from a page of ours"
        )
