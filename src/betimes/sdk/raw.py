"""Answers as they came, with what they mean: for who needs a header or the bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from betimes.sdk.calling import AsyncCaller, Caller
from betimes.sdk.exchange import Response, problem_of, value_of
from betimes.sdk.operation import Operation


@dataclass(frozen=True, slots=True)
class RawResponse:
    """What came back for an operation."""

    response: Response
    operation: Operation

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self.response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        return self.response.headers

    @property
    def body(self) -> bytes:
        """Every byte of the body."""
        return self.response.body

    def parse(self) -> Any:
        """What the method itself would have given; of a list it is the one page."""
        return value_of(self.operation, self.response)


def raw_of(operation: Operation, response: Response) -> RawResponse:
    """An answer that is no refusal; a refusal is raised, as ever."""
    if response.status >= 400:  # noqa: PLR2004 -- HTTP
        raise problem_of(response)
    return RawResponse(response, operation)


class RawCaller(Caller):
    """A list is not read on: what comes back is one page."""

    def pages(self, operation: Operation, **said: Any) -> Any:
        """The first page, or the one whose cursor was said."""
        return self.call(operation, **said)


class AsyncRawCaller(AsyncCaller):
    """The same, awaited."""

    def pages(self, operation: Operation, **said: Any) -> Any:
        """The first page, or the one whose cursor was said."""
        return self.call(operation, **said)


class Performing:
    """Calls whose answers are kept as they are."""

    def __init__(self, perform: Callable[..., Any]) -> None:
        self.perform = perform
