"""What is sealed and has to be told, and what was answered and has to be sealed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from betimes.domain.errors import Locked
from betimes.domain.ids import TenantId
from betimes.ops.contents import Keys, is_sealed, sealing_keys
from betimes.ops.desk import Desk
from betimes.ops.endpoints import open_credential
from betimes.ops.sayings import (
    is_sealed_text,
    open_text,
    opened_or_closed,
    seal_response,
    tells_sealed,
)
from betimes.ops.vault import Vault
from betimes.store.audit import EventRow
from betimes.store.deliveries import Done
from betimes.store.endpoints import Endpoint
from betimes.store.pool import Connection
from betimes.store.run_contents import Content, read_contents
from betimes.store.vault import read_data_keys

FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Opens what a courier sends, as far as its node has the keys."""

    vault: Vault | None
    entropy: Callable[[int], bytes]
    desk: Desk | None
    """What seals answers, where they are to be sealed."""

    async def credential(self, connection: Connection, endpoint: Endpoint) -> bytes | None:
        """The address of a chat."""
        if self.vault is None:
            return None
        try:
            return await open_credential(self.vault, connection, endpoint)
        except Locked:
            return None

    async def contents(
        self, connection: Connection, endpoint: Endpoint, told: Mapping[UUID, EventRow]
    ) -> dict[UUID, Content]:
        """What the runs of events were given and gave, for endpoints that want all of it."""
        if endpoint.settings.get("payload") != FULL:
            return {}
        found = await read_contents(connection, endpoint.tenant, told.values())
        if not any(map(_is_closed, found.values())):
            return found
        keys = await self._keys(connection, endpoint)
        if keys is None:
            return {event: one for event, one in found.items() if not _is_closed(one)}
        return {event: _opened(keys, one) for event, one in found.items()}

    async def told(
        self, connection: Connection, endpoint: Endpoint, told: dict[UUID, EventRow]
    ) -> dict[UUID, EventRow]:
        """Events with the errors they tell of."""
        if not any(map(tells_sealed, told.values())):
            return told
        keys = await self._keys(connection, endpoint)
        return {event: opened_or_closed(keys, one) for event, one in told.items()}

    async def kept(
        self, connection: Connection, tenant: TenantId, done: Sequence[Done]
    ) -> Sequence[Done]:
        """What was answered, as it goes into its rows."""
        if self.desk is None or not self.desk.seals:
            return done
        keys = await sealing_keys(self.desk, connection, tenant)
        return [
            replace(one, sent=replace(one.sent, response=seal_response(keys, one.sent.response)))
            for one in done
        ]

    async def _keys(self, connection: Connection, endpoint: Endpoint) -> Keys | None:
        if self.vault is None:
            return None
        data_keys = await read_data_keys(connection, endpoint.tenant)
        return Keys(self.vault, endpoint.tenant, data_keys, self.entropy)


def _is_closed(content: Content) -> bool:
    return is_sealed(content.payload) or is_sealed(content.result) or is_sealed_text(content.error)


def _opened(keys: Keys, content: Content) -> Content:
    try:
        return Content(
            payload=keys.open(content.payload),
            result=keys.open(content.result),
            error=open_text(keys, content.error),
        )
    except Locked:
        return Content(None, None, None)
