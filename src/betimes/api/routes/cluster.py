"""The cell: who is there, who owns what."""

from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.route import Load, NoQuery, Route
from betimes.api.shaping import missing
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import from_text, to_text
from betimes.domain.scopes import Scope
from betimes.ops import cluster as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import more as wire
from betimes.wire.base import shown_instant, shown_maybe


def shown_cell(call: Call[Any, Any], cell: ops.Cell) -> wire.ClusterShown:
    """The cell as it is shown."""
    return wire.ClusterShown(
        id=str(cell.id),
        shards=cell.shards,
        created_at=shown_instant(cell.created_at),
        paused_at=shown_maybe(cell.paused_at),
        paused_reason=cell.paused_reason,
        now=shown_instant(cell.now),
        version=call.service.version,
    )


async def read(call: Call[NoQuery, None]) -> Reply:
    """The cell."""
    return Reply(value=shown_cell(call, await ops.read_cell(call.service.desk)))


def _told(call: Call[Any, Any], cell: ops.Cell) -> Told:
    return Told(
        answer=answer(200, shown_cell(call, cell)),
        resource="cluster",
        after={"paused": cell.paused_at is not None, "reason": cell.paused_reason},
    )


async def pause(call: Call[NoQuery, wire.PauseCluster]) -> Reply:
    """Put the brake on the whole cell."""

    async def verb(desk: Desk) -> ops.Cell:
        return await ops.pause_cell(desk, reason=call.body.reason)

    return await perform(call, verb, lambda cell: _told(call, cell), as_system=True)


async def resume(call: Call[NoQuery, None]) -> Reply:
    """Let the brake go."""

    async def verb(desk: Desk) -> ops.Cell:
        return await ops.resume_cell(desk)

    return await perform(call, verb, lambda cell: _told(call, cell), as_system=True)


async def drain(call: Call[NoQuery, None]) -> Reply:
    """Ask a node to finish what it holds and to stop."""
    text = call.path["node"]
    try:
        node = from_text("nod", text)
    except Invalid:
        raise missing("node", text) from None

    async def verb(desk: Desk) -> ops.NodeRow:
        try:
            return await ops.drain_node(desk, node)
        except NotFound:
            raise missing("node", text) from None

    def tell(row: ops.NodeRow) -> Told:
        return Told(answer=answer(202, shown_node(row)), resource=text, after={"drain": True})

    return await perform(call, verb, tell, as_system=True)


async def shards(call: Call[NoQuery, None]) -> Reply:
    """Every shard, its owner and how far it has come."""
    found = await ops.read_shards(call.service.desk)
    items = [
        wire.ShardShown(
            shard=row.shard,
            owner=None if row.owner is None else to_text("nod", row.owner),
            epoch=str(row.epoch),
            lease_until=shown_maybe(row.lease_until),
            published_through=shown_maybe(row.published_through),
        )
        for row in found
    ]
    return Reply(value=wire.ShardList(items=items))


async def nodes(call: Call[NoQuery, None]) -> Reply:
    """Every process of the service."""
    found = await ops.read_nodes(call.service.desk)
    return Reply(value=wire.NodeList(items=[shown_node(row) for row in found]))


def shown_node(row: ops.NodeRow) -> wire.NodeShown:
    """A node as it is shown."""
    return wire.NodeShown(
        id=to_text("nod", row.id),
        name=row.name,
        state="dead" if not row.live else "draining" if row.draining else "live",
        version=row.version,
        tzdata=row.tzdata,
        roles=row.roles,
        started_at=shown_instant(row.started_at),
        heartbeat_at=shown_instant(row.heartbeat_at),
        skew_ms=row.skew_ms,
        draining=row.draining,
    )


def _change(path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=f"/v1/cluster{path}",
        name=f"cluster.{name}",
        says=says,
        handler=handler,
        scope=Scope.CLUSTER_WRITE,
        load=Load.VITAL,
        **more,
    )


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
    _change(
        "/pause",
        "pause",
        "Lease nothing in the whole cell until it is resumed.",
        pause,
        body=wire.PauseCluster,
        body_optional=True,
        answers={200: wire.ClusterShown},
        example={"reason": "the database moves"},
    ),
    _change("/resume", "resume", "Let the brake go.", resume, answers={200: wire.ClusterShown}),
    _change(
        "/nodes/{node}/drain",
        "drain_node",
        "Ask a node to finish what it holds and to stop.",
        drain,
        answers={202: wire.NodeShown},
    ),
)
