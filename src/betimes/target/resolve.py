"""From names to addresses: once for each request, remembered for a few seconds.

The answer is checked whole, and the address that is called is one of those that were checked;
nothing is looked up a second time between the check and the call.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from betimes.domain.clock import Clock

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Addresses of a host name as text, best first; raises OSError when there are none."""

KEPT_SECONDS = 10.0
FAILURES_KEPT_SECONDS = 2.0
NAMES_MAX = 10_000
LOOKUPS_AT_ONCE = 32


@dataclass(slots=True)
class _Known:
    until: float
    addresses: list[str]
    fault: str | None = None


class Resolver:
    """Remembers lookups; many who ask for one name at the same time cost one lookup."""

    def __init__(self, lookup: Lookup, *, clock: Clock) -> None:
        self._lookup = lookup
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Future[None]] = {}

    def known(self, host: str) -> list[str] | None:
        """The addresses of a host if they are fresh; without waiting."""
        found = self._known.get(host)
        if found is None or found.fault is not None or found.until <= self._clock.monotonic():
            return None
        return found.addresses

    async def resolve(self, host: str) -> list[str]:
        """The addresses of a host, best first; raises OSError when there are none."""
        while True:
            found = self._known.get(host)
            if found is not None and found.until > self._clock.monotonic():
                if found.fault is not None:
                    raise OSError(found.fault)
                return found.addresses
            if (asking := self._asking.get(host)) is not None:
                await asyncio.shield(asking)
                continue
            await self._ask(host)

    def failed(self, host: str, address: str) -> None:
        """An address did not take a connection: the others come first from now on."""
        found = self._known.get(host)
        if found is not None and found.addresses[:1] == [address]:
            found.addresses.append(found.addresses.pop(0))

    async def _ask(self, host: str) -> None:
        asking = self._asking[host] = asyncio.get_running_loop().create_future()
        try:
            addresses = list(await self._lookup(host))
            fault = None if addresses else "no address"
        except OSError as error:
            addresses, fault = [], error.strerror or str(error) or "no address"
        finally:
            del self._asking[host]
            asking.set_result(None)
        kept = KEPT_SECONDS if fault is None else FAILURES_KEPT_SECONDS
        if len(self._known) >= NAMES_MAX:
            self._known.clear()
        self._known[host] = _Known(self._clock.monotonic() + kept, addresses, fault)


class SystemLookup:
    """What the machine's resolver says, asked in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="betimes-names")

    async def __call__(self, host: str) -> Sequence[str]:
        """Addresses in the order in which the machine would try them."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _addresses, host)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _addresses(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
