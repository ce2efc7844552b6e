"""A process that owns an embedded server until it is killed: `python embedded_owner.py DATA BIN`.

It says `ready PID` when the server accepts connections, and `attached PID` when it only attached.
With `--threaded` the server is started from a thread that ends at once.
"""

import asyncio
import sys
import threading
from pathlib import Path

from betimes.embedded import EmbeddedPostgres, find_binaries
from embedded_kit import RealClock


async def start(server: EmbeddedPostgres) -> None:
    await server.start()
    word = "attached" if server.attached else "ready"
    sys.stdout.write(f"{word} {server.pid}\n")
    sys.stdout.flush()


def main() -> None:
    data, directory, *flags = sys.argv[1:]
    server = EmbeddedPostgres(
        data=Path(data),
        binaries=find_binaries(Path(directory)),
        clock=RealClock(),
        password_factory=lambda: "it's no secret",
    )
    if "--threaded" in flags:
        starter = threading.Thread(target=lambda: asyncio.run(start(server)))
        starter.start()
        starter.join()
    else:
        asyncio.run(start(server))
    sys.stdin.read()


if __name__ == "__main__":
    main()
