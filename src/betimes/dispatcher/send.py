"""Sending one event to one endpoint, by whatever way it has."""

from collections.abc import Callable, Sequence
from uuid import UUID

from betimes.dispatcher.chat import chat_body
from betimes.dispatcher.mail import Mailer
from betimes.dispatcher.message import CLOUD_EVENT, cloud_event, event_id, notice_of
from betimes.domain import webhook
from betimes.domain.clock import Clock
from betimes.domain.errors import Refused
from betimes.domain.notice import Sent
from betimes.store.audit import EventRow
from betimes.store.endpoints import Endpoint
from betimes.store.run_contents import Content
from betimes.target.answer import Answer, NoAnswer, Patience, Request
from betimes.target.classify import GONE, SUCCESSES, retry_after
from betimes.target.delivery import Policies
from betimes.target.redirect import Sends
from betimes.target.url import read_url

THROTTLES = frozenset({429, 502, 504})
SNIPPET_LENGTH_MAX = 500
JSON = "application/json; charset=utf-8"
UNTAMED = "Expect:"

Secrets = Callable[[Endpoint], Sequence[bytes]]
"""What requests to an endpoint are signed with, newest first."""


class Sender:
    """Sends; says what came of it and decides nothing."""

    def __init__(
        self,
        *,
        client: Sends,
        clock: Clock,
        policies: Policies,
        secrets: Secrets,
        patience: Patience,
        mailer: Mailer | None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._policies = policies
        self._secrets = secrets
        self._patience = patience
        self._mailer = mailer

    async def send(
        self,
        endpoint: Endpoint,
        event: EventRow,
        credential: bytes | None = None,
        content: Content | None = None,
    ) -> Sent:
        """One attempt; what our own rules refuse is a failure like any other."""
        try:
            match endpoint.kind:
                case "chat":
                    return await self._chat(endpoint, event, credential)
                case "email":
                    return await self._mail(endpoint, event)
                case _:
                    return await self._webhook(endpoint, event, content)
        except Refused as refused:
            return Sent(ok=False, detail=refused.sentence)

    async def _webhook(self, endpoint: Endpoint, event: EventRow, content: Content | None) -> Sent:
        policy = await self._policies(endpoint.tenant)
        body = cloud_event(event, endpoint.tenant, content, policy.redaction)
        identifier = event_id(event)
        timestamp = int(self._clock.now().timestamp())
        signature = webhook.sign(self._secrets(endpoint), identifier, timestamp, body)
        headers = [
            f"content-type: {CLOUD_EVENT}",
            f"{webhook.ID}: {identifier}",
            f"{webhook.TIMESTAMP}: {timestamp}",
            f"{webhook.SIGNATURE}: {signature}",
        ]
        return await self._post(endpoint.tenant, endpoint.address, headers, body)

    async def _chat(self, endpoint: Endpoint, event: EventRow, credential: bytes | None) -> Sent:
        if credential is None:
            return Sent(ok=False, detail="its address is sealed, and this node has no key for it")
        url = credential.decode()
        body = chat_body(endpoint.settings["style"], notice_of(event))
        return await self._post(endpoint.tenant, url, [f"content-type: {JSON}"], body)

    async def _mail(self, endpoint: Endpoint, event: EventRow) -> Sent:
        if self._mailer is None:
            return Sent(ok=False, detail="this service has no mail server")
        return await self._mailer.send(event, notice_of(event), endpoint.address)

    async def _post(self, tenant: UUID, url: str, headers: list[str], body: bytes) -> Sent:
        policy = await self._policies(tenant)
        result = await self._client.send(
            Request(
                tenant=tenant,
                url=read_url(url, policy, pointer="/url"),
                method="POST",
                headers=[*headers, UNTAMED],
                body=body,
                patience=self._patience,
                addresses=policy.addresses,
            )
        )
        return self._judged(result)

    def _judged(self, result: Answer | NoAnswer) -> Sent:
        milliseconds = round(result.timings.total, 3)
        if isinstance(result, NoAnswer):
            detail = f"{result.trouble.value}: {result.detail}"
            return Sent(ok=False, detail=detail, response={"ms": milliseconds})
        snippet = result.body[: SNIPPET_LENGTH_MAX * 4].decode(errors="replace")
        return Sent(
            ok=result.status in SUCCESSES,
            status=result.status,
            detail="" if result.status in SUCCESSES else f"it answered {result.status}",
            gone=result.status == GONE,
            throttled=result.status in THROTTLES,
            pause=retry_after(result.header("retry-after"), self._clock.now()),
            response={
                "ms": milliseconds,
                "snippet": snippet.replace("\0", "")[:SNIPPET_LENGTH_MAX],
            },
        )
