"""A workflow as a target."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked


class WorkflowTarget(Asked, tag="workflow", tag_field="type"):
    """A workflow that is started with the payload as its input; the run ends as it does."""

    workflow: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    version: Annotated[int, msgspec.Meta(ge=1, description="Without one, the newest.")] | None = (
        None
    )
