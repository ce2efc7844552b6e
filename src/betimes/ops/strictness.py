"""A strict tenant takes no work for handlers and queues that nobody has heard of.

A handler is known when a worker has declared it within a day, a queue when it has settings, when
such a worker names it, or when it is the default one. Workers that say that they take anything make
nothing known: a misspelt name would be as good as any other.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta

from betimes.domain.errors import Invalid
from betimes.domain.ids import TenantId
from betimes.domain.run import QUEUE_DEFAULT
from betimes.ops.asking import Asking
from betimes.ops.desk import Desk
from betimes.store.pool import Connection
from betimes.store.workers import KnownNames, read_known_names

BELIEVED_FOR = 2.0
TENANTS_MAX = 10_000
HEARD_WITHIN = timedelta(days=1)
NOTHING = KnownNames(handlers=frozenset(), queues=frozenset())


class Strictness:
    """What strict tenants know, as learned a moment ago."""

    def __init__(self) -> None:
        self._known: dict[TenantId, tuple[KnownNames, float]] = {}
        self._asking: Asking[TenantId, KnownNames] = Asking()

    def forget(self, tenant: TenantId) -> None:
        """Ask anew: a worker has registered here, or a queue was changed."""
        self._asking.forget(tenant)
        self._known.pop(tenant, None)

    async def check(
        self,
        desk: Desk,
        tenant: TenantId,
        *,
        queues: Collection[str],
        handlers: Iterable[str | None],
    ) -> None:
        """Refuse what is not known; a request to a target has no handler.

        Raises:
            Invalid: a queue or a handler is unknown.

        """
        known, until = self._known.get(tenant, (NOTHING, -1.0))
        if until <= desk.clock.monotonic():
            known = await self._asking.ask(tenant, lambda: self._learn(desk, tenant))
        for handler in handlers:
            if handler is not None and handler not in known.handlers:
                raise Invalid(
                    f"expected a handler that a worker has declared within a day, got {handler!r}; "
                    "the tenant is strict",
                    code="unknown_handler",
                    pointer="/handler",
                )
        for queue in queues:
            if queue != QUEUE_DEFAULT and queue not in known.queues:
                raise Invalid(
                    f"expected a queue that has settings or workers, got {queue!r}; "
                    "the tenant is strict",
                    code="unknown_queue",
                    pointer="/queue",
                )

    async def _learn(self, desk: Desk, tenant: TenantId) -> KnownNames:
        async def work(connection: Connection) -> KnownNames:
            since = await desk.now(connection) - HEARD_WITHIN
            return await read_known_names(connection, tenant, since=since)

        # The workers of the service belong to no tenant: only the service sees them.
        known = await desk.transact(work, tenant=None)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = (known, desk.clock.monotonic() + BELIEVED_FOR)
        return known
