"""The awaited twin by the names of the blocking one: `from betimes import aio; aio.Client()`."""

from betimes.sdk.client import AsyncClient as Client

__all__ = ["Client"]
