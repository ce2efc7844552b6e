"""The dispatcher as a role of a node."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from betimes.app.delivery import TenantPolicies, http_client, signing_secrets, url_policy
from betimes.app.desk import desk_of
from betimes.app.listening import hears, listener, waking
from betimes.app.masters import opening_vault
from betimes.app.node import Node
from betimes.app.pepper import derived, peppered
from betimes.config import Settings
from betimes.dispatcher.mail import Mailer
from betimes.dispatcher.send import Sender
from betimes.dispatcher.service import Dispatcher
from betimes.domain.clock import Clock
from betimes.ops.endpoints import Endpoint, Notifying, active_secrets
from betimes.rhythm import Stopping
from betimes.store.hints import WAKE, NoHints
from betimes.target.answer import Patience


class DispatcherRole:
    """Tells endpoints what they want to know, and watches alert rules."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def run(self, stopping: Stopping) -> None:
        """Dispatch until asked to stop."""
        node = self._node
        pepper = await peppered(node)
        notifying = notifying_of(node.settings, pepper)
        vault = await opening_vault(node)
        desk = await desk_of(node, NoHints(), vault=vault)
        async with http_client(node) as client:
            sender = Sender(
                client=client,
                clock=node.clock,
                policies=TenantPolicies(desk, url_policy(node.settings.target), clock=node.clock),
                secrets=_secrets(notifying, signing_secrets(pepper), node.clock),
                patience=Patience(
                    connect=node.settings.target.connect_timeout.total_seconds(),
                    idle=node.settings.target.idle_timeout.total_seconds(),
                    total=node.settings.notify.timeout.total_seconds(),
                ),
                mailer=None if node.settings.mail.host is None else Mailer(node.settings.mail),
            )
            dispatcher = Dispatcher(
                database=node.database,
                sender=sender,
                clock=node.clock,
                telemetry=node.telemetry,
                settings=node.settings.notify,
                shards=desk.shards,
                roll=node.dice.roll,
                entropy=node.dice.entropy,
                vault=vault,
                desk=desk,
                hinted=hears(node),
            )
            ear = listener(node, [WAKE], waking(dispatcher.nudges))
            async with asyncio.TaskGroup() as group:
                listening = None if ear is None else group.create_task(ear.run())
                try:
                    await dispatcher.run(stopping)
                finally:
                    if listening is not None:
                        listening.cancel()


def notifying_of(settings: Settings, pepper: bytes) -> Notifying:
    """What endpoints need beyond the desk."""
    mail = settings.mail
    return Notifying(
        secret_key=derived(pepper, b"endpoint"),
        endpoints_max=settings.notify.endpoints_max,
        rules_max=settings.notify.rules_max,
        mail_domains=None if mail.host is None else tuple(mail.domains or ()),
    )


def _secrets(
    notifying: Notifying, of_tenant: Callable[[UUID], Sequence[bytes]], clock: Clock
) -> Callable[[Endpoint], Sequence[bytes]]:
    """Endpoints have secrets of their own; callbacks are signed like requests to targets."""

    def secrets(endpoint: Endpoint) -> Sequence[bytes]:
        if endpoint.is_callback:
            return of_tenant(endpoint.tenant)
        return active_secrets(notifying.secret_key, endpoint, now=clock.now())

    return secrets
