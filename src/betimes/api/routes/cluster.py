"""The cell: who is there, who owns what."""

from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.route import NoQuery, Route
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.ops import cluster as ops
from betimes.wire import more as wire
from betimes.wire.base import shown_instant, shown_maybe


async def read(call: Call[NoQuery, None]) -> Reply:
    """The cell."""
    cell = await ops.read_cell(call.service.desk)
    return Reply(
        value=wire.ClusterShown(
            id=str(cell.id),
            shards=cell.shards,
            created_at=shown_instant(cell.created_at),
            paused_at=shown_maybe(cell.paused_at),
            now=shown_instant(cell.now),
            version=call.service.version,
        )
    )


async def shards(call: Call[NoQuery, None]) -> Reply:
    """Every shard, its owner and how far it has come."""
    found = await ops.read_shards(call.service.desk)
    items = [
        wire.ShardShown(
            shard=row.shard,
            owner=None if row.owner is None else to_text("nod", row.owner),
            epoch=str(row.epoch),
            lease_until=shown_maybe(row.lease_until),
            planned_through=shown_maybe(row.planned_through),
            published_through=shown_maybe(row.published_through),
        )
        for row in found
    ]
    return Reply(value=wire.ShardList(items=items))


async def nodes(call: Call[NoQuery, None]) -> Reply:
    """Every process of the service."""
    found = await ops.read_nodes(call.service.desk)
    items = [
        wire.NodeShown(
            id=to_text("nod", row.id),
            name=row.name,
            version=row.version,
            tzdata=row.tzdata,
            roles=row.roles,
            started_at=shown_instant(row.started_at),
            heartbeat_at=shown_instant(row.heartbeat_at),
            skew_ms=row.skew_ms,
            draining=row.draining,
        )
        for row in found
    ]
    return Reply(value=wire.NodeList(items=items))


def _route(path: str, name: str, says: str, handler: Any, answers: Any) -> Route:
    return Route(
        method="GET",
        path=f"/v1/cluster{path}",
        name=f"cluster.{name}",
        says=says,
        handler=handler,
        scope=Scope.CLUSTER_READ,
        answers={200: answers},
    )


ROUTES = (
    _route("", "get", "The cell.", read, wire.ClusterShown),
    _route("/shards", "shards", "Every shard and its owner.", shards, wire.ShardList),
    _route("/nodes", "nodes", "Every process of the service.", nodes, wire.NodeList),
)
