"""A relay as a process: its own client, its own signals, no part of the service."""

import sys
from datetime import timedelta
from typing import TextIO

from betimes.app.clock import SystemClock
from betimes.app.run import make_telemetry
from betimes.app.signals import hearing_signals
from betimes.config import Settings
from betimes.relay import Relay, outbox_at
from betimes.relay.service import sender
from betimes.rhythm import Stopping
from betimes.sdk.client import AsyncClient


async def relay(
    settings: Settings,
    *,
    address: str,
    url: str | None,
    every: timedelta,
    once: bool = False,
    stream: TextIO = sys.stderr,
) -> int:
    """Carry rows until told to stop, or until none is left; the exit code of the process."""
    clock, stopping = SystemClock(), Stopping()
    telemetry = make_telemetry(settings, clock=clock, stream=stream)
    client = AsyncClient(url)
    carrier = Relay(
        outbox=outbox_at(address),
        send=sender(client),
        clock=clock,
        telemetry=telemetry,
        every=every,
    )
    try:
        with hearing_signals(stopping) as interrupts:
            if once:
                while await carrier.tick():
                    pass
            else:
                await carrier.run(stopping)
    finally:
        await client.close()
    return interrupts.exit_code
