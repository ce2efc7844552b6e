"""Entity tags: the revision of a definition, which only edits move."""

import re

from betimes.api.call import Request
from betimes.api.problem import Trouble

ANY = "*"
_TAG = re.compile(r'(W/)?"([^"]*)"')


def tag_of(revision: int) -> str:
    """The tag of a revision."""
    return f'"{revision}"'


def expected_revision(request: Request, current: int | None) -> int | None:
    """The revision the caller has seen, from If-Match; None when it does not say.

    `current` is needed for lists and `*`; a tag that cannot be ours fails at once.
    """
    said = request.header(b"if-match")
    if said is None:
        return None
    if said.strip() == ANY:
        if current is None:
            raise stale(None)
        return None
    tags = {text for weak, text in _TAG.findall(said) if not weak}
    if current is not None and str(current) in tags:
        return current
    raise stale(current)


def names_revision(request: Request) -> bool:
    """Whether the caller says which revision it has seen; `*` means any."""
    return (request.header(b"if-match") or ANY).strip() != ANY


def stale(current: int | None, *, header: str = "If-Match") -> Trouble:
    """Somebody was quicker."""
    headers = {} if current is None else {"ETag": tag_of(current)}
    found = "nothing" if current is None else f"revision {current}"
    return Trouble(
        "precondition_failed", f"{header} does not fit: there is {found}", headers=headers
    )


def unchanged(request: Request, tag: str) -> bool:
    """Whether the caller has it already, by If-None-Match."""
    said = request.header(b"if-none-match")
    if said is None:
        return False
    return said.strip() == ANY or tag.strip('"') in {text for _, text in _TAG.findall(said)}


def wants_none(request: Request) -> bool:
    """Whether the caller wants to create and never to replace."""
    return (request.header(b"if-none-match") or "").strip() == ANY
