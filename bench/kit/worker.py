"""A worker process that notes how late runs start: `python -m bench.kit.worker DSN SLOTS FILE`.

It is the worker of the service with one more handler. Lags are taken by the clock of this machine,
which is also the database's here, so they are not flattered by an estimate of the database's time.
The handler `bench.note` notes `now - due`; with eight bytes of payload it notes `now - payload`.
"""

import struct
import sys
import time
from array import array
from pathlib import Path

from betimes.app import database as databases
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.app.run import run_to_end
from betimes.app.signals import hearing_signals
from betimes.app.worker import WorkerRole
from betimes.config import Settings
from betimes.config.settings import DatabaseSettings, ServerSettings, WorkerSettings
from betimes.domain.ids import NodeId, random_ids
from betimes.rhythm import Stopping
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry
from betimes.worker import Context, Handlers

HANDLER = "bench.note"
STAMP = struct.Struct("d")


def noting(notes: "array[float]") -> Handlers:
    """The one handler."""

    async def note(context: Context) -> None:
        now = time.time()
        payload = context.payload
        due = STAMP.unpack(payload)[0] if payload else context.due_at.timestamp()
        notes.append(due)
        notes.append(now - due)

    handlers = Handlers()
    handlers.add(HANDLER, note)
    return handlers


async def work(settings: Settings, file: Path) -> int:
    """Work until told to stop, then leave the notes."""
    clock, dice, stopping = SystemClock(), Dice(), Stopping()
    notes = array("d")
    with hearing_signals(stopping):
        async with (
            databases.located(settings, clock=clock, dice=dice) as place,
            databases.opened(settings, place, clock=clock, dice=dice) as database,
        ):
            node = Node(
                card=_card(dice),
                settings=settings,
                clock=clock,
                dice=dice,
                telemetry=Telemetry(clock=clock),
                database=database,
                listen_dsn=place.direct_dsn,
            )
            await WorkerRole(node, noting(notes)).run(stopping)
    file.write_bytes(notes.tobytes())  # noqa: ASYNC240 -- nothing else is left to do
    return 0


def _card(dice: Dice) -> NodeCard:
    (identifier,) = random_ids(int(time.time() * 1000), 0, dice.entropy(8))
    return NodeCard(
        id=NodeId(identifier), name="bench", version="0", tzdata="bench", roles=("worker",)
    )


def main(arguments: list[str]) -> int:
    """Read the three arguments."""
    dsn, slots, file = arguments
    settings = Settings(
        database=DatabaseSettings(dsn=dsn),
        server=ServerSettings(roles=("worker",)),
        worker=WorkerSettings(slots=int(slots)),
    )
    return run_to_end(work(settings, Path(file)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
