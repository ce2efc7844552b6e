"""The least HTTP client that can tell "done", "refused" and "nobody knows" apart."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 8.0


class Unclear(Exception):
    """The request may or may not have been carried out."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def ok(self) -> bool:
        """Whether it was accepted."""
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Api:
    """One address of the service, with a key."""

    port: int
    key: str

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        idempotency_key: str | None = None,
    ) -> Answer:
        """One request on a connection of its own.

        Raises:
            Unclear: no whole answer came.

        """
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._ask(method, path, body, idempotency_key)
        except (OSError, EOFError, TimeoutError, ValueError, IndexError) as error:
            raise Unclear(f"{method} {path}: {error!r}") from error

    async def _ask(self, method: str, path: str, body: Any, idempotency_key: str | None) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            content = b"" if body is None else json.dumps(body).encode()
            head = [
                f"{method} {path} HTTP/1.1",
                "host: 127.0.0.1",
                f"authorization: Bearer {self.key}",
                "connection: close",
                f"content-length: {len(content)}",
            ]
            if body is not None:
                head.append("content-type: application/json")
            if idempotency_key is not None:
                head.append(f"idempotency-key: {idempotency_key}")
            writer.write("\r\n".join([*head, "", ""]).encode() + content)
            await writer.drain()
            return await _answer(reader)
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> Answer:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    if headers.get("transfer-encoding") == "chunked":
        content = await _chunks(reader)
    elif "content-length" in headers:
        content = await reader.readexactly(int(headers["content-length"]))
    else:
        content = await reader.read()
    status = int(first.split(" ")[1])
    return Answer(status, headers, json.loads(content) if content else None)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    content = b""
    while size := int((await reader.readline()).strip(), 16):
        content += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return content
