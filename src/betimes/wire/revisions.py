"""What jobs were before their edits, as asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Instant, Json, Members, Shown


class Change(Shown):
    """What one revision made of a member; the path is a JSON pointer into the definition."""

    op: Literal["add", "remove", "replace"]
    path: str
    old: Json | msgspec.UnsetType = msgspec.UNSET
    new: Json | msgspec.UnsetType = msgspec.UNSET
    hidden: Annotated[
        bool, msgspec.Meta(description="Whether the contents are shown in the view `full` only.")
    ] = False


class Revision(Shown):
    """A definition as it was."""

    revision: int
    current: bool
    made_at: Annotated[
        Instant | None, msgspec.Meta(description="Null when the revision before is not kept.")
    ]
    author: Annotated[
        str | None,
        msgspec.Meta(description="Whose key or which operation made it; null when unknown."),
    ]
    replaced_at: Instant | None
    replaced_by: str | None
    definition: Members
    diff: Annotated[
        list[Change] | None,
        msgspec.Meta(
            description="What differs from the revision before; null when that is not kept."
        ),
    ]


class ReadRevision(Asked):
    """How much of a revision is shown."""

    view: Literal["basic", "full"] = "basic"


class Rollback(Asked):
    """Which definition to bring back."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=2147483647)]


class RevisionList(Shown):
    """What a job was and is, newest first."""

    items: list[Revision]
