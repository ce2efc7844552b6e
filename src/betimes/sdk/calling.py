"""Calls and pages: what the generated methods are made of."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from betimes.sdk.exchange import Given
from betimes.sdk.operation import Operation
from betimes.wire.base import Page

T = TypeVar("T")
UNSET = msgspec.UNSET
Unset = msgspec.UnsetType


class Transport(Protocol):
    """Performs a call, retrying where that is safe."""

    def perform(self, operation: Operation, given: Given) -> Any:
        """What the operation answers."""
        ...


class AsyncTransport(Protocol):
    """The same, awaited."""

    async def perform(self, operation: Operation, given: Given) -> Any:
        """What the operation answers."""
        ...


class Pages(Generic[T]):
    """A list that reads its pages as it goes."""

    def __init__(self, read: Callable[[str | None], Page[T]]) -> None:
        self._read = read

    def __repr__(self) -> str:
        return "<a list that reads its pages as it goes: say `for one in …`, or `first_page()`>"

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def pages(self) -> Iterator[Page[T]]:
        """Page by page."""
        cursor: str | None = None
        while True:
            page = self._read(cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def first_page(self) -> Page[T]:
        """Only the first page."""
        return self._read(None)


class AsyncPages(Generic[T]):
    """The same for `async for`."""

    def __init__(self, read: Callable[[str | None], Awaitable[Page[T]]]) -> None:
        self._read = read

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Page by page."""
        cursor: str | None = None
        while True:
            page = await self._read(cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    async def first_page(self) -> Page[T]:
        """Only the first page."""
        return await self._read(None)


def _given(path: Mapping[str, str] | None, query: Mapping[str, Any] | None, **more: Any) -> Given:
    return Given(path=path or {}, query=query or {}, **more)


def _at(given: Given, cursor: str | None) -> Given:
    return given if cursor is None else replace(given, query={**given.query, "cursor": cursor})


class Caller:
    """What the blocking methods call."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """Perform an operation."""
        return self._transport.perform(operation, _given(path, query, **more))

    def pages(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Pages[Any]:
        """A list; nothing is read before somebody looks at it."""
        given = _given(path, query, **more)
        return Pages(lambda cursor: self._transport.perform(operation, _at(given, cursor)))


class AsyncCaller:
    """What the awaitable methods call."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def call(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """Perform an operation."""
        return await self._transport.perform(operation, _given(path, query, **more))

    def pages(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AsyncPages[Any]:
        """A list; nothing is read before somebody looks at it."""
        given = _given(path, query, **more)
        return AsyncPages(lambda cursor: self._transport.perform(operation, _at(given, cursor)))
