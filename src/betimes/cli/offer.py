"""What the command line must know about an operation; the table of all of them is generated."""

from typing import NamedTuple


class Member(NamedTuple):
    """Something one may say with an operation, in its query or in its body.

    `place` is where it goes in the body; a dotted one goes into an object inside.
    """

    place: str
    kind: str
    choices: tuple[str, ...] = ()
    required: bool = False
    default_true: bool = False

    @property
    def name(self) -> str:
        """As an option without its dashes; what a filter holds needs no prefix."""
        return self.place.removeprefix("filter.").replace(".", "-").replace("_", "-")

    @property
    def key(self) -> str:
        """As a parameter of a function."""
        return "said_" + self.place.replace(".", "_").replace("-", "_")


class Offer(NamedTuple):
    """One operation."""

    method: str
    path: str
    says: str
    parameters: tuple[str, ...] = ()
    query: tuple[Member, ...] = ()
    body: tuple[Member, ...] | None = None
    pages: bool = False
    keyed: bool = False
    tries: bool = False
    whole: bool = False
    """The body is one JSON value that only the caller knows."""
    raw: bool = False
    """The body is bytes."""
