"""Declared sets of jobs, and runs whose body is the payload."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Shown
from betimes.wire.jobs import NewJob, Tags


class Selector(Asked):
    """What marks the jobs of a set."""

    tags: Tags = {}


class ApplyJobs(Asked):
    """A set of jobs as it is to be."""

    jobs: Annotated[list[NewJob], msgspec.Meta(max_length=1000)]
    selector: Selector = msgspec.field(default_factory=Selector)
    prune: bool = False
    adopt: bool = False
    dry_run: bool = False


class Difference(Shown):
    """Which members of a job change."""

    name: str
    id: str
    members: list[str]


class Applied(Shown):
    """What was done, or would be; jobs by group~name."""

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    deleted: list[str]
    diff: list[Difference]
    dry_run: bool
