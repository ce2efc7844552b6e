"""Chats and mail: what people get, through real servers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from betimes.config.mail import MailSettings
from betimes.domain.ids import to_text
from betimes.domain.notice import DeliveryState
from betimes.ops.desk import Desk
from notify_kit import a_dispatcher, an_endpoint, an_event, deliveries
from target_kit import CERTIFICATE, a_target, server_tls

PASSWORD = "long-and-secret"  # noqa: S105 -- of the server of the tests
SAYS_SO = {"handler": "<!channel> @everyone *bold*", "run_id": "run_1"}


@pytest.mark.parametrize("style", ["slack", "teams", "discord"])
async def test_chats_get_their_own_bodies_and_no_mentions(desk: Desk, style: str) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        url = target.url("/services/T0/B0/secret")
        endpoint = await an_endpoint(
            desk,
            "http://127.0.0.1/…",
            kind="chat",
            credential=url.encode(),
            style=style,
        )
        await an_event(desk, "run.dead", SAYS_SO)
        await bench.turn()
        (got,) = target.received
        assert got.path == "/services/T0/B0/secret"
        assert got.headers["content-type"].startswith("application/json")
        assert "webhook-signature" not in got.headers
        check_chat(style, json.loads(got.body))
        (delivery,) = await deliveries(desk, endpoint)
        assert delivery.state is DeliveryState.DELIVERED


def check_chat(style: str, body: dict[str, Any]) -> None:
    if style == "slack":
        assert body["text"].startswith("run.dead")
        assert "<!channel>" not in json.dumps(body["blocks"][1:])
        assert body["blocks"][0]["type"] == "header"
    elif style == "teams":
        (attachment,) = body["attachments"]
        assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
        facts = attachment["content"]["body"][1]["facts"]
        assert {"title": "run id", "value": "run\\_1"} in facts
    else:
        assert body["allowed_mentions"] == {"parse": []}
        assert body["embeds"][0]["color"] == 0xDC2626


@dataclass
class Mails:
    """A real SMTP server's letter box."""

    got: list[Envelope] = field(default_factory=list)
    refuses: str | None = None
    authenticated: bool = False

    async def handle_DATA(  # noqa: N802 -- the server's name
        self, _server: SMTP, session: Any, envelope: Envelope
    ) -> str:
        self.authenticated = bool(session.authenticated)
        if self.refuses is not None:
            return self.refuses
        self.got.append(envelope)
        return "250 OK"

    @property
    def messages(self) -> list[EmailMessage]:
        texts = [one.content for one in self.got if isinstance(one.content, bytes)]
        return [message_from_bytes(text, policy=policy.default) for text in texts]


def knows(_server: SMTP, _session: Any, _envelope: Any, _how: str, told: Any) -> AuthResult:
    good = (
        isinstance(told, LoginPassword)
        and told.login == b"betimes"
        and told.password == PASSWORD.encode()
    )
    return AuthResult(success=good)


@asynccontextmanager
async def a_mail_server(security: str) -> AsyncIterator[tuple[Mails, MailSettings]]:
    """A real one, on a free port of loopback; with encryption it wants a password as well."""
    mails, tls = Mails(), server_tls()
    options: dict[str, Any] = {"hostname": "localhost"}
    if security == "starttls":
        options |= {"tls_context": tls, "require_starttls": True}
        options |= {"auth_required": True, "authenticator": knows}
    elif security == "tls":
        # The library sees no encryption that began below it, so whoever comes in is asked here.
        options |= {"auth_require_tls": False, "authenticator": knows}
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(mails, **options), "127.0.0.1", 0, ssl=tls if security == "tls" else None
    )
    try:
        yield (
            mails,
            MailSettings(
                # The certificate of the tests is for this name.
                host="localhost" if security != "none" else "127.0.0.1",
                port=server.sockets[0].getsockname()[1],
                security=security,
                username=None if security == "none" else "betimes",
                password=None if security == "none" else PASSWORD,
                sender="betimes@example.org",
                authorities=CERTIFICATE,
            ),
        )
    finally:
        server.close()


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
async def test_mail_goes_through_a_real_server(desk: Desk, security: str) -> None:
    async with (
        a_mail_server(security) as (mails, settings),
        a_dispatcher(desk, mail=settings) as bench,
    ):
        endpoint = await an_endpoint(desk, "ada@example.org", kind="email")
        nasty = {"handler": "one\r\nBcc: eve@example.org", "run_id": "run_1"}
        event = await an_event(desk, "run.dead", nasty)
        await bench.turn()
        (delivery,) = await deliveries(desk, endpoint)
        assert delivery.state is DeliveryState.DELIVERED, delivery.error
    assert mails.authenticated == (security != "none")
    (message,) = mails.messages
    assert mails.got[0].rcpt_tos == ["ada@example.org"]
    assert message["Bcc"] is None
    assert message["Subject"].startswith("[betimes] run.dead: one")
    assert message["Message-ID"] == f"<{to_text('evt', event)}@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "run id: run_1" in message.get_content()


async def test_a_refused_mail_is_a_failure_that_says_why(desk: Desk) -> None:
    async with a_mail_server("none") as (mails, settings):
        mails.refuses = "452 the mailbox is full"
        async with a_dispatcher(desk, mail=settings) as bench:
            endpoint = await an_endpoint(desk, "ada@example.org", kind="email")
            await an_event(desk)
            await bench.turn()
            (delivery,) = await deliveries(desk, endpoint)
    assert delivery.state is DeliveryState.WAITING
    assert delivery.status == 452
    assert "the mailbox is full" in (delivery.error or "")


async def test_a_server_that_is_not_believed_gets_no_password(desk: Desk) -> None:
    async with a_mail_server("starttls") as (mails, settings):
        doubted = MailSettings(
            host="localhost", port=settings.port, username="betimes", password=PASSWORD
        )
        async with a_dispatcher(desk, mail=doubted) as bench:
            endpoint = await an_endpoint(desk, "ada@example.org", kind="email")
            await an_event(desk)
            await bench.turn()
            (delivery,) = await deliveries(desk, endpoint)
    assert delivery.state is DeliveryState.WAITING
    assert "certificate" in (delivery.error or "").lower()
    assert mails.got == []
