"""Pages in both directions over lists in the order of ids, or of keys and ids.

A cursor is a place and a direction. A place is an id, with a key where the list is sorted by one,
and lies just before the row that has it: reading up takes rows from it on, reading down those below
it. Rows may come and go between two calls: a page begins at its place, whatever happened around it,
so nothing that stayed is shown twice or left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from betimes.api.cursor import Cursors
from betimes.ops.listing import Spot
from betimes.wire.base import Asked

FORTH, BACK = "n", "p"
UNBOUND = frozenset({"limit", "cursor", "fields", "view", "count", "include"})
"""Parameters that may change from page to page."""
BY_ID = ""
"""The key of every row in a list that has no other order."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins."""

    spot: Spot | None
    backwards: bool

    @property
    def at(self) -> UUID | None:
        """The id, which is all there is to a place in the order of ids."""
        return None if self.spot is None else self.spot[1]


def scope_of(name: str, tenant: UUID, query: Asked) -> tuple[Any, ...]:
    """What a cursor belongs to: a list of a tenant with its filters and order."""
    told = msgspec.to_builtins(query)
    return (name, tenant, sorted((one, str(told[one])) for one in told if one not in UNBOUND))


def read_place(cursors: Cursors, scope: Sequence[Any], cursor: str | None) -> Place:
    """The place of a cursor; the beginning without one."""
    if cursor is None:
        return Place(None, backwards=False)
    *key, at, direction = cursors.read(scope, cursor)
    spot = (key[0] if key else BY_ID, msgspec.convert(at, type=UUID))
    return Place(spot, backwards=direction == BACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """The cursors around a page."""

    next: str | None
    prev: str | None


def turn(
    cursors: Cursors,
    scope: Sequence[Any],
    place: Place,
    shown: Sequence[Spot],
    *,
    more: Spot | None,
    ascending: bool,
) -> Turned:
    """The cursors around what is shown, which is in the order of the list.

    `more` is where the read would go on in its own direction, None at the end. `ascending` says
    whether the list itself is in the order of keys and ids.
    """

    def forth(at: Spot | None) -> str | None:
        return None if at is None else cursors.write(scope, [*_told(at), FORTH])

    def back(at: Spot | None) -> str | None:
        return None if at is None else cursors.write(scope, [*_told(at), BACK])

    if place.backwards:
        end = _after(shown[-1], ascending=ascending) if shown else place.spot
        return Turned(next=forth(end), prev=back(more))
    if place.spot is None:
        return Turned(next=forth(more), prev=None)
    front = _before(shown[0], ascending=ascending) if shown else place.spot
    return Turned(next=forth(more), prev=back(front))


def _told(at: Spot) -> list[str]:
    key, identifier = at
    return [key, str(identifier)] if key else [str(identifier)]


def _after(row: Spot, *, ascending: bool) -> Spot:
    """The place behind a row of the list."""
    return above(row) if ascending else row


def _before(row: Spot, *, ascending: bool) -> Spot:
    """The place in front of a row of the list."""
    return row if ascending else above(row)


def above(row: Spot) -> Spot:
    """The place just after the row with this key and id."""
    key, identifier = row
    return key, UUID(int=identifier.int + 1)


def below(place: UUID) -> UUID:
    """The id before a place, for reads that begin after an id."""
    return UUID(int=max(place.int - 1, 0))
