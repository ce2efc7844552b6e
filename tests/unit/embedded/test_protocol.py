"""What a server's first answer means."""

import asyncio
from pathlib import Path

import pytest

from betimes.embedded.protocol import Answer, classify, probe, startup_packet


def error(state: str) -> bytes:
    fields = b"SFATAL\0VFATAL\0C" + state.encode() + b"\0Mno matter what\0\0"
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0", Answer.ACCEPTING),
        (error("57P03"), Answer.STARTING),
        (error("53300"), Answer.ACCEPTING),
        (error("3D000"), Answer.ACCEPTING),
        (b"", Answer.ABSENT),
    ],
)
def test_only_cannot_connect_now_means_not_yet(answer: bytes, meaning: Answer) -> None:
    assert classify(answer) is meaning


def test_the_packet_says_its_own_length() -> None:
    packet = startup_packet("postgres")
    assert int.from_bytes(packet[:4], "big") == len(packet)
    assert packet.endswith(b"user\0postgres\0database\0postgres\0\0")


async def test_nobody_listens_where_there_is_no_socket(tmp_path: Path) -> None:
    assert await probe(tmp_path, 5432, user="postgres") is Answer.ABSENT


async def test_a_listener_that_hangs_up_is_no_server(tmp_path: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.close()

    async with await asyncio.start_unix_server(hang_up, tmp_path / ".s.PGSQL.5432"):
        assert await probe(tmp_path, 5432, user="postgres") is Answer.ABSENT
