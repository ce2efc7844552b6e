"""Events reach those who want them: none is lost, none is invented, whoever comes in between."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from betimes.domain.event import Severity
from betimes.domain.ids import to_text
from betimes.domain.notice import Filter
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.endpoints import change_endpoint
from betimes.store.routing import SETTLED_AFTER
from notify_kit import a_dispatcher, an_endpoint, an_event, deliveries
from ops_kit import OTHER, TENANT, add_tenant, every, fetch


async def test_only_what_is_wanted_is_handed_out(desk: Desk) -> None:
    async with a_dispatcher(desk) as bench:
        of_runs = await an_endpoint(desk, "https://a.test/", types=["run.*"])
        of_mail = await an_endpoint(
            desk, "https://b.test/", chosen=Filter(queues=frozenset({"mail"}))
        )
        grave = await an_endpoint(desk, "https://c.test/", chosen=Filter(severity=Severity.ERROR))
        dead = await an_event(desk, "run.dead")
        mail = await an_event(desk, "run.retrying", {"queue": "mail"})
        made = await an_event(desk, "job.created", {"job_id": "job_x"})
        assert await bench.router.tick() == 4
        assert [one.event for one in await deliveries(desk, of_runs)] == [dead, mail]
        assert [one.event for one in await deliveries(desk, of_mail)] == [mail]
        assert [one.event for one in await deliveries(desk, grave)] == [dead]
        assert made not in {one.event for one in await deliveries(desk, of_mail)}


async def test_tags_of_jobs_are_looked_up(desk: Desk) -> None:
    tagged = await create_job(
        desk, TENANT, NewJob(definition=every(60, options={"tags": {"env": "prod"}}))
    )
    plain = await create_job(desk, TENANT, NewJob(definition=every(60)))
    async with a_dispatcher(desk) as bench:
        chosen = Filter(tags={"env": "prod"})
        endpoint = await an_endpoint(desk, "https://a.test/", chosen=chosen)
        wanted = await an_event(desk, "run.dead", {"job_id": to_text("job", tagged.id)})
        await an_event(desk, "run.dead", {"job_id": to_text("job", plain.id)})
        assert await bench.router.tick() == 1
        assert [one.event for one in await deliveries(desk, endpoint)] == [wanted]


async def test_tenants_do_not_hear_of_each_other(desk: Desk) -> None:
    await add_tenant(desk.database)
    async with a_dispatcher(desk) as bench:
        mine = await an_endpoint(desk, "https://a.test/")
        theirs = await an_endpoint(desk, "https://b.test/", tenant=OTHER)
        event = await an_event(desk, tenant=OTHER)
        assert await bench.router.tick() == 1
        assert await deliveries(desk, mine) == []
        assert [one.event for one in await deliveries(desk, theirs)] == [event]


async def test_any_number_of_routers_hand_out_once(desk: Desk) -> None:
    async with a_dispatcher(desk) as one, a_dispatcher(desk) as other:
        endpoint = await an_endpoint(desk, "https://a.test/")
        for _ in range(20):
            await an_event(desk)
        assert await one.router.tick() == 20
        assert await other.router.tick() == 0
        assert await one.router.tick() == 0
        assert len(await deliveries(desk, endpoint)) == 20


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(days=2)])
async def test_a_wrong_clock_loses_nothing(desk: Desk, skew: timedelta) -> None:
    """Ids carry the clocks of those who write; arrival is by the database's own."""
    async with a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, "https://a.test/")
        right = await an_event(desk)
        assert await bench.router.tick() == 1
        wrong = await an_event(desk, at=datetime.now(UTC) + skew)  # noqa: TID251 -- a wrong clock
        assert await bench.router.tick() == 1
        assert {one.event for one in await deliveries(desk, endpoint)} == {right, wrong}


async def test_a_row_that_becomes_visible_late_is_met_later(desk: Desk, dsn: str) -> None:
    async with a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, "https://a.test/")
        slow = await asyncpg.connect(dsn)
        try:
            transaction = slow.transaction()
            await transaction.start()
            await slow.execute(
                "INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)"
                " VALUES (0, '019b76da-a800-8000-8000-000000000001', $1, 'run.dead', 's', '{}',"
                " now())",
                TENANT,
            )
            await an_event(desk)
            assert await bench.router.tick() == 1
            await transaction.commit()
        finally:
            await slow.close()
        assert await bench.router.tick() == 1
        assert len(await deliveries(desk, endpoint)) == 2


async def test_what_is_settled_is_never_looked_at_again(desk: Desk) -> None:
    async with a_dispatcher(desk) as bench:
        await an_endpoint(desk, "https://a.test/")
        await an_event(desk)
        await bench.router.tick()
        long_ago = 2 * SETTLED_AFTER
        await fetch(
            desk.database,
            "UPDATE betimes.outbox SET arrived_at = arrived_at - $1::interval RETURNING 1",
            long_ago,
        )
        await fetch(
            desk.database,
            "UPDATE betimes.routings SET routed_through = routed_through - 2 * $1::interval"
            " RETURNING 1",
            long_ago,
        )
        await bench.router.tick()
        (row,) = await fetch(
            desk.database,
            "SELECT routed_through > (SELECT max(arrived_at) FROM betimes.outbox) AS past"
            " FROM betimes.routings",
        )
        assert row["past"]


async def test_whoever_comes_later_is_not_told_of_the_past(desk: Desk) -> None:
    async with a_dispatcher(desk) as bench:
        first = await an_endpoint(desk, "https://a.test/")
        await an_event(desk)
        late = await an_endpoint(desk, "https://b.test/")
        assert await bench.router.tick() == 1
        assert len(await deliveries(desk, first)) == 1
        assert await deliveries(desk, late) == []


async def test_nothing_is_handed_out_to_the_disabled(desk: Desk) -> None:
    async with a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, "https://a.test/")
        closed = await change_endpoint(desk, endpoint, endpoint, disabled=True)
        await an_event(desk)
        assert await bench.router.tick() == 0
        await change_endpoint(desk, closed, closed, disabled=False)
        event = await an_event(desk)
        assert await bench.router.tick() == 1
        assert [one.event for one in await deliveries(desk, endpoint)] == [event]
