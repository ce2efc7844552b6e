"""A call of a task on its way: checked, encoded, and not sent yet."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from betimes.sdk.task import Task

R = TypeVar("R")


@dataclass(slots=True, kw_only=True)
class Prepared(Generic[R]):
    """What `enqueue` sends; middleware may still change `members` and `headers`."""

    task: "Task[Any, R, Any]"
    payload: bytes | None
    members: dict[str, Any]
    """Members of the new run as the API reads them: queue, priority, delay and so on."""
    idempotency_key: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The new run as the API reads it."""
        told = {"handler": self.task.name, **self.members}
        if self.payload is not None:
            told["payload"] = msgspec.Raw(self.payload)
        return told
