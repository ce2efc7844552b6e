"""A call outlasts a rolling restart of the service: half a minute of nobody, resets or 503."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from betimes import AsyncClient, Client
from betimes.sdk import ambient
from betimes.sdk.errors import ApiError, Unreachable

RESTART_SECONDS = 30.0
BUSY = (
    b"HTTP/1.1 503 X\r\ncontent-type: application/problem+json\r\nretry-after: 2\r\n"
    b'content-length: 150\r\n\r\n{"type":"t","title":"t","status":503,"code":"unavailable",'
    b'"detail":"d","instance":"i","request_id":"r","retryable":true,"errors":[]}'
)
GONE = BUSY.replace(b"503", b"404").replace(b"unavailable", b"not_found").replace(b"true", b"false")


def answered(head: bytes) -> bytes:
    """With the right length, whatever was put into it."""
    first, _, body = head.partition(b"\r\n\r\n")
    lines = [line for line in first.split(b"\r\n") if not line.startswith(b"content-length")]
    length = b"content-length: %d" % len(body)
    return b"\r\n".join([*lines, length, b"", body])


class Service:
    """A real socket that behaves as it is told."""

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.keys: list[str] = []
        self.requests = 0
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread: threading.Thread | None = None
        if trouble != "refuses":  # bound and not listening, a socket refuses
            self.listen()

    def listen(self) -> None:
        self.socket.listen(16)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def heal(self) -> None:
        before, self.trouble = self.trouble, ""
        if before == "refuses":
            self.listen()

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while True:
                data = b""
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                self.requests += 1
                lines = data.decode().lower().split("\r\n")
                self.keys += [one[17:] for one in lines if one.startswith("idempotency-key: ")]
                if self.trouble == "resets":
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                if self.trouble == "503":
                    connection.sendall(answered(BUSY))
                elif self.trouble == "404":
                    connection.sendall(answered(GONE))
                else:
                    connection.sendall(b"HTTP/1.1 202 X\r\ncontent-length: 2\r\n\r\n{}")


class Time:
    """Passes only while a client waits; the service is well again after the restart."""

    def __init__(self, service: Service, *, well_after: float = RESTART_SECONDS) -> None:
        self.service = service
        self.now = 0.0
        self.pauses: list[float] = []
        self.well_after = well_after

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        before, self.now = self.now, self.now + seconds
        if before < self.well_after <= self.now:
            self.service.heal()

    async def apause(self, seconds: float) -> None:
        self.pause(seconds)


@pytest.fixture
def restart(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Service, Time]]:
    trouble, well_after = request.param
    service = Service(trouble)
    time = Time(service, well_after=well_after)
    monkeypatch.setattr(ambient, "monotonic", lambda: time.now)
    monkeypatch.setattr(ambient, "pause", time.pause)
    monkeypatch.setattr(ambient, "apause", time.apause)
    yield service, time
    service.close()


TROUBLES = [("refuses", RESTART_SECONDS), ("resets", RESTART_SECONDS), ("503", RESTART_SECONDS)]


def ask(service: Service, kind: str) -> int:
    """Create a run, by either client; the status of the answer."""
    url = f"http://127.0.0.1:{service.port}"
    headers = {"idempotency-key": "one-of-mine"}
    body = {"handler": "noop"}
    if kind == "sync":
        with Client(url, "btm_ak_x") as client:
            return client.request("POST", "/v1/runs", body=body, headers=headers).status

    async def work() -> int:
        async with AsyncClient(url, "btm_ak_x") as client:
            return (await client.request("POST", "/v1/runs", body=body, headers=headers)).status

    return asyncio.run(work())


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("restart", TROUBLES, indirect=True, ids=lambda one: one[0])
def test_a_call_outlasts_a_restart(restart: tuple[Service, Time], kind: str) -> None:
    service, time = restart
    assert ask(service, kind) == 202
    assert RESTART_SECONDS <= time.now <= RESTART_SECONDS + 5
    assert set(service.keys) == {"one-of-mine"}, "repeats are the same to the service"
    assert len(time.pauses) < 60


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("restart", [("refuses", 1e9), ("503", 1e9)], indirect=True, ids=str)
def test_it_is_given_up_after_a_minute(restart: tuple[Service, Time], kind: str) -> None:
    service, time = restart
    if service.trouble == "503":
        assert ask(service, kind) == 503
    else:
        with pytest.raises(Unreachable):
            ask(service, kind)
    assert 57 <= time.now <= 60


@pytest.mark.parametrize("restart", [("404", 1e9)], indirect=True, ids=str)
def test_what_cannot_change_is_not_asked_again(restart: tuple[Service, Time]) -> None:
    service, time = restart
    client = Client(f"http://127.0.0.1:{service.port}", "btm_ak_x")
    with pytest.raises(ApiError), client:
        client.runs.get("run_1")
    assert (service.requests, time.pauses) == (1, [])


@pytest.mark.parametrize("restart", [("resets", 1e9)], indirect=True, ids=str)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_may_have_been_seen_is_not_repeated_without_a_key(
    restart: tuple[Service, Time], kind: str
) -> None:
    """Also on a connection that was kept: its end says nothing about who has read the request."""
    service, time = restart
    service.trouble = ""
    url = f"http://127.0.0.1:{service.port}"

    def blocking() -> None:
        with Client(url, "btm_ak_x") as client:
            client.request("POST", "/v1/first")
            service.trouble = "resets"
            client.request("PATCH", "/v1/second", body={})

    async def awaited() -> None:
        async with AsyncClient(url, "btm_ak_x") as client:
            await client.request("POST", "/v1/first")
            service.trouble = "resets"
            await client.request("PATCH", "/v1/second", body={})

    def work() -> None:
        blocking() if kind == "sync" else asyncio.run(awaited())

    with pytest.raises(Unreachable) as lost:
        work()
    assert lost.value.sent
    assert (service.requests, time.pauses) == (2, [])


@pytest.mark.parametrize("restart", [("refuses", 1e9)], indirect=True, ids=str)
def test_how_long_can_be_said(
    restart: tuple[Service, Time], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, time = restart
    url = f"http://127.0.0.1:{service.port}"
    with pytest.raises(Unreachable), Client(url, "btm_ak_x", retry_for=0) as client:
        client.request("GET", "/v1/runs")
    assert time.pauses == []
    monkeypatch.setenv("BETIMES_RETRY_FOR", "5")
    heard: list[float] = []
    told = Client(url, "btm_ak_x", told=lambda _, seconds: heard.append(seconds))
    with pytest.raises(Unreachable), told:
        told.request("GET", "/v1/runs")
    assert 4 <= time.now <= 5
    assert heard == time.pauses
