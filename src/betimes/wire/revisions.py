"""What jobs were before their edits, as asked for and shown."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Instant, Members, Shown


class Revision(Shown):
    """A definition as it was."""

    revision: int
    current: bool
    replaced_at: Instant | None
    replaced_by: str | None
    definition: Members


class Rollback(Asked):
    """Which definition to bring back."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=2147483647)]


class RevisionList(Shown):
    """What a job was and is, newest first."""

    items: list[Revision]
