"""For whom a request is: said once, and believed about nothing else."""

import pytest

from api_kit import Client, Served, served

HEAD = b"GET /healthz HTTP/1.1\r\nconnection: close\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEAD, 400),
        (HEAD + b"host: a\r\nhost: a\r\n", 400),
        (HEAD + b"host: a\r\nHost: b\r\n", 400),
        (HEAD + b"host: a, b\r\n", 400),
        (HEAD + b"host: a/b\r\n", 400),
        (HEAD + b"host: user@a\r\n", 400),
        (HEAD + b"host: a:x\r\n", 400),
        (HEAD + b"host: a\r\n", 200),
        (HEAD + b"host: a.example:8090\r\n", 200),
        (HEAD + b"host: [::1]:8090\r\n", 200),
        (HEAD + b"host:\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\nhost: a\r\nhost: b\r\n", 400),
    ],
)
async def test_a_request_names_its_host_once(served: Served, head: bytes, status: int) -> None:
    answer = await Client(served.port).send(head + b"\r\n")
    assert answer.status == status, answer.body
    if status == 400:
        assert answer.code == "malformed_request"


async def test_a_device_is_sent_where_we_are_and_nowhere_else(dsn: str) -> None:
    """Anybody can send a header that says otherwise."""
    forged = {
        "host": "evil.example",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "evil.example",
    }
    for public, begins in (
        (None, "http://127.0.0.1:"),
        ("https://jobs.example.com/betimes/", "https://jobs.example.com/betimes/device"),
    ):
        async with served(dsn, public_url=public) as api:
            begun = (await Client(api.port)("POST", "/v1/auth/device", headers=forged)).json
        for name in ("verification_uri", "verification_uri_complete"):
            assert begun[name].startswith(begins)
            assert "evil" not in begun[name]
