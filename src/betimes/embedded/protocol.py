"""Does the server accept connections? Asked in its own protocol, without a driver.

A start-up packet is enough: a server that answers with an authentication request would serve us.
"""

import asyncio
import re
import struct
from enum import Enum
from pathlib import Path

PROTOCOL_3 = 196608
CANNOT_CONNECT_NOW = "57P03"
ANSWER_WITHIN_SECONDS = 5.0
ANSWER_MAX = 8192
SQLSTATE = re.compile(rb"\0C([0-9A-Z]{5})\0")


class Answer(Enum):
    """What a server said to a start-up packet."""

    ABSENT = "nobody listens"
    STARTING = "starting up, recovering or shutting down"
    ACCEPTING = "accepts connections"


async def probe(directory: Path, port: int, *, user: str) -> Answer:
    """Ask the server behind a Unix socket."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_SECONDS):
            reader, writer = await asyncio.open_unix_connection(directory / f".s.PGSQL.{port}")
            try:
                writer.write(startup_packet(user))
                return classify(await reader.read(ANSWER_MAX))
            finally:
                # Gone before we return: a blocked loop must not keep a half-open connection.
                writer.close()
                await writer.wait_closed()
    except TimeoutError:
        return Answer.STARTING
    except OSError:
        return Answer.ABSENT


def startup_packet(user: str) -> bytes:
    """The first message of a client, protocol 3.0."""
    body = struct.pack("!i", PROTOCOL_3)
    body += b"".join(part.encode() + b"\0" for part in ("user", user, "database", "postgres", ""))
    return struct.pack("!i", len(body) + 4) + body


def classify(answer: bytes) -> Answer:
    """An error other than "not now" still comes from a server that is up."""
    match answer[:1]:
        case b"":
            return Answer.ABSENT
        case b"E":
            state = SQLSTATE.search(b"\0" + answer[5:])
            not_now = state is not None and state[1].decode() == CANNOT_CONNECT_NOW
            return Answer.STARTING if not_now else Answer.ACCEPTING
        case _:
            return Answer.ACCEPTING
