"""What happened to a run: its attempts, and what it was given."""

from dataclasses import replace

from betimes.domain.ids import RunId, TenantId
from betimes.ops.contents import open_bytes
from betimes.ops.desk import Desk
from betimes.ops.runs import RunView, get_run
from betimes.ops.sayings import open_attempts
from betimes.store.dead_letters import Attempt, read_attempts
from betimes.store.pool import Connection
from betimes.store.remote import read_specs
from betimes.store.specs import SpecKey

__all__ = ["Attempt", "get_history", "with_payload"]


async def get_history(desk: Desk, tenant: TenantId, run: RunId) -> tuple[RunView, list[Attempt]]:
    """A run and the attempts of it that did not succeed."""

    async def work(connection: Connection) -> tuple[RunView, list[Attempt]]:
        inner = desk.inside(connection, desk.hints)
        view = await get_run(inner, tenant, run)
        attempts = await read_attempts(connection, run)
        return view, await open_attempts(desk, connection, tenant, attempts)

    return await desk.transact(work, tenant=tenant)


async def with_payload(desk: Desk, tenant: TenantId, view: RunView) -> RunView:
    """A run with what it is given: its own payload, or that of its job in the run's revision."""
    run = view.run
    own = run.payload is not None or "payload_ref" in run.options
    if own or run.job is None or run.revision is None:
        return view
    key = SpecKey(run.job, run.revision)

    async def work(connection: Connection) -> RunView:
        spec = (await read_specs(connection, run.shard, [key])).get(key)
        if spec is None:
            return view
        reference = spec.options.get("payload_ref")
        options = run.options if reference is None else {**run.options, "payload_ref": reference}
        (payload,) = await open_bytes(desk, connection, tenant, [spec.payload])
        return replace(view, run=replace(run, payload=payload, options=options))

    return await desk.transact(work, tenant=tenant)
