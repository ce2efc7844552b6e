"""Code around enqueueing and around attempts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betimes.sdk.context import Context
    from betimes.sdk.handle import RunHandle
    from betimes.sdk.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended, as middleware sees it."""

    result: Any = None
    error: BaseException | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the handler returned."""
        return self.error is None


class Middleware:
    """Override what you need. `before` hooks go in order, `after` hooks in reverse.

    The hooks of an attempt run where the handler runs (its thread, task or process), so context
    variables they set are seen by it. A hook that raises fails the attempt or the call.
    """

    def before_enqueue(self, prepared: "Prepared[Any]") -> None:
        """A call is about to be sent; its members and headers may still be changed."""

    def after_enqueue(self, prepared: "Prepared[Any]", run: "RunHandle[Any]") -> None:
        """The service has it."""

    def before_attempt(self, context: "Context") -> None:
        """A handler is about to be called."""

    def after_attempt(self, context: "Context", end: AttemptEnd) -> None:
        """It has returned or raised."""
