"""Patience with a name, so that a timeout says what was waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from betimes.domain.errors import Unavailable


@asynccontextmanager
async def within(limit: timedelta, what: str) -> AsyncIterator[None]:
    """Cancel what is inside after the limit and raise `Unavailable` with its name.

    Measures real time: it guards calls to the outside, which no test's clock can hurry.
    """
    patience = asyncio.timeout(limit.total_seconds())
    try:
        async with patience:
            yield
    except TimeoutError as error:
        if not patience.expired():
            raise
        raise Unavailable(f"{what} took longer than {limit.total_seconds():g} s") from error
