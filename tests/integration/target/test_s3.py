"""The object store backend against a server of others; `make test-s3` brings one along."""

import os
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from betimes.domain.errors import Unavailable
from betimes.target.answer import Answer, Patience
from betimes.target.s3 import S3Shelf
from betimes.target.sigv4 import Credentials
from betimes.testing.real_clock import RealClock
from target_kit import a_client, a_request, a_target

SERVER = os.environ.get("BETIMES_TEST_S3_SERVER")  # noqa: TID251 -- the tests' own switch
NAME = f"{UUID(int=1)}/{UUID(int=2)}.1"
LARGE = bytes(range(256)) * 20_000
needs_server = pytest.mark.skipif(SERVER is None, reason="run by make test-s3")


def shelf_at(endpoint: str, client: object, bucket: str = "bucket") -> S3Shelf:
    return S3Shelf(
        client=client,  # type: ignore[arg-type]
        clock=RealClock(),
        endpoint=endpoint,
        bucket=bucket,
        prefix="some where/",
        credentials=Credentials(access_key="me", secret_key="hush"),  # noqa: S106
        patience=Patience(total=10.0),
    )


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[str]:
    """A running server with a bucket in it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: ASYNC220 -- before anything else goes on
            [str(SERVER), "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
        )
    try:
        async with a_client() as client:
            while True:
                put = a_request(f"http://127.0.0.1:{port}/bucket", method="PUT", body=b"")
                if isinstance(made := await client.send(put), Answer):
                    assert made.status == 200
                    break
                await RealClock().sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@needs_server
async def test_what_is_put_comes_back_and_goes(endpoint: str) -> None:
    """By names with everything in them that has to be quoted, large ones, too."""
    async with a_client() as client:
        shelf = shelf_at(endpoint, client)
        assert await shelf.get(NAME) is None
        for content in (b"", b"small", LARGE):
            await shelf.put(NAME, content)
            assert await shelf.get(NAME) == content
        await shelf.delete(NAME)
        await shelf.delete(NAME)
        assert await shelf.get(NAME) is None


@needs_server
async def test_a_bucket_that_is_not_there_is_trouble(endpoint: str) -> None:
    async with a_client() as client:
        with pytest.raises(Unavailable):
            await shelf_at(endpoint, client, "nowhere").put(NAME, b"x")


async def test_a_store_that_does_not_answer_or_refuses_is_trouble() -> None:
    """Never an empty content, and never a sentence of theirs."""
    async with a_client() as client:
        async with a_target(status=403, body=b"<Secret>") as target:
            shelf = shelf_at(target.url("").rstrip("/"), client)
            for verb in (shelf.put(NAME, b"x"), shelf.get(NAME), shelf.delete(NAME)):
                with pytest.raises(Unavailable, match="403"):
                    await verb
        with pytest.raises(Unavailable):
            await shelf.get(NAME)
