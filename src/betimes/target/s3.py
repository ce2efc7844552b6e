"""An S3-compatible store that keeps sealed bytes, reached with our own client.

The endpoint is the operator's choice, so private addresses are fine; metadata services stay closed.
Requests address the bucket in the path, which every such store understands.
"""

from dataclasses import replace
from ipaddress import ip_network
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.target.address import AddressPolicy
from betimes.target.answer import Answer, Patience, Request
from betimes.target.client import Client
from betimes.target.sigv4 import Credentials, quoted, signed_headers
from betimes.target.url import PORT_MAX, PortRange, TargetUrl, UrlPolicy, read_url

NOBODY = UUID(int=0)
"""Connections of the service itself, shared with no tenant."""
OBJECT_BYTES_MAX = 64 << 20
PLAIN = ("content-type: application/octet-stream", "Expect:")
"""Otherwise libcurl calls it a form, and some servers believe that."""
OK, NO_CONTENT, NOT_FOUND = 200, 204, 404
EVERYWHERE = AddressPolicy(allowed=(ip_network("0.0.0.0/0"), ip_network("::/0")), loopback=True)


class S3Shelf:
    """Keeps each name as an object of a bucket."""

    scheme = "s3"

    def __init__(
        self,
        *,
        client: Client,
        clock: Clock,
        endpoint: str,
        bucket: str,
        prefix: str,
        credentials: Credentials,
        patience: Patience,
    ) -> None:
        self._client = client
        self._clock = clock
        host = endpoint.partition("://")[2].partition("/")[0].rpartition("@")[2]
        self._policy = UrlPolicy(
            addresses=EVERYWHERE,
            plain_http=True,
            ports=(PortRange(1, PORT_MAX),),
            names=frozenset([host.partition(":")[0].lower()]),
        )
        self._endpoint = read_url(endpoint.rstrip("/") + "/", self._policy, pointer="")
        self._folder = quoted(f"/{bucket}/{prefix}")
        self._credentials = credentials
        self._patience = patience

    async def put(self, name: str, content: bytes) -> None:
        """Keep bytes under a name."""
        answer = await self._ask("PUT", name, content)
        if answer.status != OK:
            raise _trouble("PUT", answer.status)

    async def get(self, name: str) -> bytes | None:
        """The bytes of a name."""
        answer = await self._ask("GET", name, None)
        if answer.status == NOT_FOUND:
            return None
        if answer.status != OK or answer.truncated:
            raise _trouble("GET", answer.status)
        return answer.body

    async def delete(self, name: str) -> None:
        """Forget a name."""
        answer = await self._ask("DELETE", name, None)
        if answer.status not in (OK, NO_CONTENT, NOT_FOUND):
            raise _trouble("DELETE", answer.status)

    async def _ask(self, method: str, name: str, body: bytes | None) -> Answer:
        url = self._url(name)
        headers = signed_headers(
            self._credentials,
            method=method,
            host=_host(url),
            path=url.path,
            body=body or b"",
            now=self._clock.now(),
        )
        request = Request(
            tenant=NOBODY,
            url=url,
            method=method,
            headers=[*(f"{key}: {value}" for key, value in headers.items()), *PLAIN],
            body=body,
            patience=self._patience,
            addresses=self._policy.addresses,
            kept_max=OBJECT_BYTES_MAX,
        )
        result = await self._client.send_repeatable(request)
        if isinstance(result, Answer):
            return result
        raise Unavailable(f"the store of blobs: {result.detail}")

    def _url(self, name: str) -> TargetUrl:
        return replace(self._endpoint, path=self._folder + quoted(name))


def _host(url: TargetUrl) -> str:
    return url.origin.partition("://")[2]


def _trouble(verb: str, status: int) -> Unavailable:
    return Unavailable(f"the store of blobs answered {status} to {verb}")
