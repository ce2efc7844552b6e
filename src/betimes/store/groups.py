"""What creations that share a transaction leave behind: keys with answers, acts, events."""

from collections.abc import Sequence
from typing import Any

from betimes.domain.errors import Contended
from betimes.domain.ids import ShardId, TenantId
from betimes.store.ask import maybe
from betimes.store.audit import Telling
from betimes.store.idempotency import Answer, Claim, claim_row
from betimes.store.jobs import to_rows
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("groups")


class ChainBegun(Contended):
    """A chain without a head has none to wait for: the second one to begin it begins anew."""


async def keep_group(
    connection: Connection,
    tenant: TenantId,
    shard: ShardId,
    claims: Sequence[Claim],
    answers: Sequence[Answer],
    tellings: Sequence[Telling],
) -> bool:
    """Keep all keys of one moment, and add the acts to the chain of one shard.

    False when a key was taken before: then what was written must not stay.

    Raises:
        ChainBegun: somebody else has just begun this chain; what was written must not stay.

    """
    first = claims[0]
    row = await maybe(
        connection,
        SQL["keep_group"],
        tenant=tenant,
        shard=shard,
        claimed_at=first.now,
        days=first.days,
        fresh_claims=to_rows([claim_row(*one) for one in zip(claims, answers, strict=True)]),
        bodies=[answer.body for answer in answers],
        now=tellings[0].act.at,
        contents=[telling.act.content() for telling in tellings],
        grouped_acts=to_rows([_act(telling) for telling in tellings]),
    )
    if row is None:
        raise ChainBegun("the first acts of a chain came from two sides; nothing was written")
    kept: int = row["keys"]
    return kept == len(claims) * len(first.days)


def _act(telling: Telling) -> dict[str, Any]:
    """An act and its event by the names the statement gives them."""
    act = telling.act
    return {
        "actor": act.actor,
        "action": act.action,
        "resource": act.resource,
        "request": act.request_id,
        "before": act.before or None,
        "after": act.after or None,
        "event_id": telling.event_id,
        "event": telling.event,
        "body": telling.event_body,
    }
