"""Callbacks: whom a job or a run tells how it ended."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked

End = Literal[
    "success", "failure", "cancellation", "run.succeeded", "run.dead", "run.expired", "run.missed",
    "run.cancelled", "run.skipped",
]  # fmt: skip


class Callback(Asked):
    """Somebody to be told how a run ended: an endpoint, or a URL."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=8192)] | None = None
    endpoint: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1, max_length=200, description="The id of an endpoint, or its name."
            ),
        ]
        | None
    ) = None
    name: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=200,
                description="Shown beside an endpoint's id: its name when this was written. "
                "Says nothing when it is sent.",
            ),
        ]
        | None
    ) = None
    on: Annotated[
        list[End],
        msgspec.Meta(max_length=9, description="Which ends, by word or event; without any, all."),
    ] = []


Callbacks = Annotated[list[Callback], msgspec.Meta(max_length=5)]
