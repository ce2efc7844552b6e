"""Runs asked for inside transactions of others: made when those commit, and never otherwise."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from betimes.domain.errors import NotFound
from betimes.domain.ids import shard_of, time_of
from betimes.domain.states import Shown
from betimes.ops.desk import Desk
from betimes.ops.producers import admit_producer
from betimes.ops.runs import get_run
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.testing.real_clock import RealClock
from ops_kit import TENANT, make_desk
from store_kit import opened, owner
from tx_kit import Shop, as_role, ask, open_shop, take_all_in


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Database]:
    async with opened(dsn, clock=RealClock()) as database:
        yield database


@pytest.fixture
def desk(store: Database) -> Desk:
    return make_desk(store, RealClock())


@pytest.fixture
async def shop(dsn: str, store: Database) -> AsyncIterator[Shop]:
    async with open_shop(dsn, store) as opened_shop:
        yield opened_shop


@pytest.fixture
async def buyer(shop: Shop) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(shop.dsn)
    yield connection
    await connection.close()


async def test_what_comes_by_a_transaction_is_sealed_when_it_is_made(
    desk: Desk, buyer: asyncpg.Connection
) -> None:
    """Until then it waits as it was given: PostgreSQL has no key."""
    sealing = replace(desk, seals=True)
    run, _ = await ask(buyer, "send_receipt", '{"order": "canary"}', "{}")
    assert (await take_all_in(sealing)).made == 1
    rows = await desk.database.many(
        load("runs")["read_run"], lane=Lane.ENGINE, shard=shard_of(run), id=run
    )
    assert b"canary" not in rows[0]["payload"]
    assert (await get_run(desk, TENANT, run)).run.payload == b'{"order": "canary"}'


async def test_a_run_is_made_when_the_transaction_commits(
    desk: Desk, buyer: asyncpg.Connection, shop: Shop
) -> None:
    async with buyer.transaction():
        await buyer.execute(f"INSERT INTO {shop.role}.orders VALUES (1)")
        run, known = await ask(buyer, "send_receipt", '{"order": 1}', '{"queue": "mail"}')
        assert (await take_all_in(desk)).total == 0
        with pytest.raises(NotFound):
            await get_run(desk, TENANT, run)
    assert not known
    # As good as made: whoever asks for it finds it before a coordinator came by.
    before = await get_run(desk, TENANT, run)
    taken = await take_all_in(desk)
    after = await get_run(desk, TENANT, run)

    assert (taken.made, len(taken.parcels)) == (1, 1)
    assert before.state is after.state is Shown.QUEUED
    assert (after.run.handler, after.run.queue, after.run.payload) == (
        "send_receipt",
        "mail",
        b'{"order": 1}',
    )
    assert after.holding is not None


async def test_a_run_vanishes_with_a_rollback_and_with_a_savepoint(
    desk: Desk, buyer: asyncpg.Connection
) -> None:
    outer = buyer.transaction()
    await outer.start()
    await ask(buyer, "gone")
    await outer.rollback()
    async with buyer.transaction():
        kept, _ = await ask(buyer, "kept")
        inner = buyer.transaction()
        await inner.start()
        await ask(buyer, "gone")
        await inner.rollback()

    taken = await take_all_in(desk)

    assert taken.made == 1
    assert (await get_run(desk, TENANT, kept)).run.handler == "kept"


async def test_one_transaction_shares_a_shard_and_a_parcel(
    desk: Desk, buyer: asyncpg.Connection
) -> None:
    async with buyer.transaction():
        runs = [(await ask(buyer, "one", options='{"delay": "PT0S"}'))[0] for _ in range(5)]
    taken = await take_all_in(desk)

    assert len({shard_of(run) for run in runs}) == 1
    # Due within the same transaction, yet not within the same moment: all are late by now.
    assert sum(len(parcel.runs) for parcel in taken.parcels) == 5
    assert len(taken.parcels) == 1


async def test_the_id_tells_when_it_is_due(desk: Desk, buyer: asyncpg.Connection) -> None:
    later, _ = await ask(buyer, "later", options='{"delay": "1h 30m"}')
    at, _ = await ask(buyer, "later", options='{"at": "2199-01-01T01:00:00+01:00"}')
    taken = await take_all_in(desk)

    wait = time_of(later) - datetime.now(UTC)  # noqa: TID251 -- the function asks the real clock
    assert timedelta(minutes=89) < wait < timedelta(minutes=91)
    assert time_of(at) == datetime(2199, 1, 1, tzinfo=UTC)
    assert (taken.made, taken.parcels) == (2, [])
    assert (await get_run(desk, TENANT, later)).state is Shown.SCHEDULED


async def test_options_are_stored_as_the_api_stores_them(
    desk: Desk, buyer: asyncpg.Connection
) -> None:
    options = """{"priority": 9, "timeout": "2m", "start_deadline": 60, "fairness_key": "a",
        "rate_limit_key": "stripe",
        "retry": {"max_attempts": 8, "backoff": "list", "delays": ["1s", "PT1M", 5], "max": "1h30m",
                  "retry_on": ["Timeout"]},
        "tags": {"env": "prod"}, "concurrency": {"key": "k", "limit": 2}}"""
    run, _ = await ask(buyer, "one", options=options)
    await take_all_in(desk)

    found = (await get_run(desk, TENANT, run)).run
    assert found.priority == 9
    assert (found.terms.gate, found.terms.fair > 0) == ("k", True)
    assert found.terms.rate == "stripe"
    assert found.options == {
        "timeout_ms": 120_000,
        "start_deadline_ms": 60_000,
        "fairness_key": "a",
        "rate_limit_key": "stripe",
        "retry": {
            "max_attempts": 8,
            "backoff": "list",
            "delays_ms": [1_000, 60_000, 5_000],
            "max_ms": 5_400_000,
            "retry_on": ["Timeout"],
        },
        "tags": {"env": "prod"},
        "concurrency": {"key": "k", "limit": 2},
    }


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ('{"queue": "a:b"}', "/queue"),
        ('{"queue": 7}', "/queue"),
        ('{"queue": "a\\nb"}', "/queue"),
        ('{"priority": 10}', "/priority"),
        ('{"priority": 1.5}', "/priority"),
        ('{"delay": "soon"}', "/delay"),
        ('{"delay": "P1M"}', "/delay"),
        ('{"delay": "P"}', "/delay"),
        ('{"delay": "PT"}', "/delay"),
        ('{"delay": -1}', "/delay"),
        ('{"delay": 1, "at": "2027-01-01T00:00:00Z"}', "/delay"),
        ('{"at": "2027-01-01T00:00:00"}', "/at"),
        ('{"at": "2027-02-30T00:00:00Z"}', "/at"),
        ('{"at": "2200-01-01T00:00:00Z"}', "/at"),
        ('{"dedupe_key": ""}', "/dedupe/key"),
        ('{"dedupe": {"form": "unique"}}', "/dedupe/key"),
        ('{"dedupe": {"key": "a", "form": "throttle"}}', "/dedupe/window"),
        ('{"dedupe": {"key": "a"}, "dedupe_key": "a"}', "/dedupe_key"),
        ('{"dedupe": {"key": "a", "form": "often"}}', "/dedupe/form"),
        ('{"dedupe": {"key": "a", "window": "PT0S"}}', "/dedupe/window"),
        ('{"timeout": true}', "/timeout"),
        ('{"retry": {"max_attempts": 0}}', "/retry/max_attempts"),
        ('{"retry": {"factor": 0.5}}', "/retry/factor"),
        ('{"retry": {"backoff": "list"}}', "/retry/delays"),
        ('{"retry": {"initial": "31d"}}', "/retry/initial"),
        ('{"retry": {"jitter": "some"}}', "/retry/jitter"),
        ('{"retry": {"retry_on": [1]}}', "/retry"),
        ('{"retry": {"often": 1}}', "/retry"),
        ('{"tags": {"a": 1}}', "/tags"),
        ('{"concurrency": {"limit": 1}}', "/concurrency/key"),
        ('{"concurrency": {"key": "a", "limit": 0}}', "/concurrency/limit"),
        ('{"rate_limit_key": ""}', "/rate_limit_key"),
        ('{"webhook": "https://a.example"}', ""),
        ("[]", ""),
    ],
)
async def test_nonsense_is_refused_with_a_sentence_and_a_pointer(
    buyer: asyncpg.Connection, options: str, pointer: str
) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await ask(buyer, "one", options=options)

    assert (caught.value.sqlstate, caught.value.detail or "") == ("BT400", pointer)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    ("member", "instead"),
    [
        ('"target": {"type": "http", "url": "https://a.example"}', "betimes relay"),
        ('"notify": [{"on": ["run.dead"], "endpoint": "ops"}]', "POST /v1/endpoints"),
    ],
)
async def test_what_only_the_service_can_check_is_refused_with_the_way_that_can(
    buyer: asyncpg.Connection, member: str, instead: str
) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await ask(buyer, "one", options=f"{{{member}}}")
    assert caught.value.sqlstate == "BT400"
    assert caught.value.detail == f"/{member.split(chr(34))[1]}"
    assert instead in str(caught.value)


async def test_a_large_payload_is_refused(buyer: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await ask(buyer, "one", f'"{"x" * 262_144}"')
    assert caught.value.sqlstate == "BT413"


@pytest.mark.parametrize("handler", ["", "x" * 256, "a\tb"])
async def test_a_handler_has_a_name(buyer: asyncpg.Connection, handler: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match="expected a handler"):
        await ask(buyer, handler)


async def test_a_duplicate_is_the_run_that_is_there(desk: Desk, buyer: asyncpg.Connection) -> None:
    options = '{"dedupe_key": "trial-7"}'
    async with buyer.transaction():
        first = await ask(buyer, "remind", options=options)
        again = await ask(buyer, "remind", options=options)
    waiting = await ask(buyer, "remind", options=options)
    await take_all_in(desk)
    made = await ask(buyer, "remind", options=options)

    assert first == (first[0], False)
    assert again == waiting == made == (first[0], True)
    assert (await take_all_in(desk)).total == 0


async def test_a_key_is_free_again_when_its_run_is_over(
    desk: Desk, store: Database, dsn: str, buyer: asyncpg.Connection
) -> None:
    options = '{"dedupe_key": "trial-7"}'
    first, _ = await ask(buyer, "remind", options=options)
    await take_all_in(desk)
    async with owner(dsn) as connection:
        await connection.execute("UPDATE betimes.runs SET state = 4, finished_at = now()")
    second, known = await ask(buyer, "remind", options=options)
    within, _ = await ask(buyer, "x", options='{"dedupe": {"key": "w", "window": "1h"}}')
    await take_all_in(desk)
    async with owner(dsn) as connection:
        await connection.execute("UPDATE betimes.runs SET state = 4, finished_at = now()")
    still = await ask(buyer, "x", options='{"dedupe": {"key": "w", "window": "1h"}}')

    assert (second != first, known) == (True, False)
    assert still == (within, True)


async def test_two_transactions_with_one_key_never_wait_and_never_fail(
    desk: Desk, shop: Shop, buyer: asyncpg.Connection
) -> None:
    options = '{"dedupe_key": "trial-7"}'
    other = await asyncpg.connect(shop.dsn)
    async with buyer.transaction():
        mine, _ = await ask(buyer, "remind", options=options)
        async with other.transaction():
            # In the other order as well: whoever waited here would be in a deadlock.
            theirs, known = await asyncio.wait_for(ask(other, "remind", options=options), 5)
            await ask(other, "remind", options='{"dedupe_key": "trial-8"}')
        await ask(buyer, "remind", options='{"dedupe_key": "trial-8"}')
    await other.close()
    taken = await take_all_in(desk)

    assert (mine != theirs, known) == (True, False)
    assert (taken.made, taken.deduplicated) == (2, 1)
    states = {(await get_run(desk, TENANT, run)).state for run in (mine, theirs)}
    assert states == {Shown.QUEUED, Shown.SKIPPED}


async def test_debounce_replaces_what_waits(desk: Desk, buyer: asyncpg.Connection) -> None:
    options = '{"dedupe": {"key": "index", "form": "debounce", "window": "1m"}}'
    first, _ = await ask(buyer, "index", options=options)
    await take_all_in(desk)
    second, known = await ask(buyer, "index", options=options)
    await take_all_in(desk)

    assert not known
    assert (await get_run(desk, TENANT, first)).state is Shown.SKIPPED
    assert (await get_run(desk, TENANT, second)).state is Shown.SCHEDULED


async def test_a_long_transaction_holds_no_lock_that_anybody_waits_for(
    dsn: str, buyer: asyncpg.Connection
) -> None:
    async with owner(dsn) as admin:
        await admin.execute("SELECT betimes.ensure_partition('runs', '2020-01-01')")
        async with buyer.transaction():
            await ask(buyer, "one", options='{"dedupe_key": "a"}')
            held = await admin.fetch(
                "SELECT relation::regclass::text AS name FROM pg_locks"
                " WHERE pid = $1 AND relation >= 16384",
                buyer.get_server_pid(),
            )
            # Dropping a partition locks all of betimes.runs, and everybody behind it would wait.
            await admin.execute("SET lock_timeout = '1s'")
            for _ in range(2):
                await admin.execute("SELECT betimes.scan_partition('runs', '2020-01-01', 100)")
            moved = await admin.fetchval("SELECT betimes.drop_partition('runs', '2020-01-01', 100)")
            assert moved == 0
    names = {row["name"] for row in held}
    assert {name for name in names if not name.startswith("betimes.intake")} == set()


async def test_a_commit_notifies_unless_the_producer_is_quiet(
    dsn: str, store: Database, shop: Shop, buyer: asyncpg.Connection
) -> None:
    told: list[str] = []
    async with owner(dsn) as ear:
        await ear.add_listener("betimes_intake", lambda *said: told.append(said[3]))
        run, _ = await ask(buyer, "one")
        await ear.execute("SELECT 1")
        assert told == [str(shard_of(run))]
        await admit_producer(store, shop.role, "default", hints=False)
        await ask(buyer, "one")
        await ear.execute("SELECT 1")
    assert len(told) == 1


async def test_it_is_in_the_audit_and_among_the_events(
    desk: Desk, dsn: str, shop: Shop, buyer: asyncpg.Connection
) -> None:
    await ask(buyer, "one")
    await take_all_in(desk)
    async with owner(dsn) as connection:
        act = await connection.fetchrow("SELECT action, actor::text FROM betimes.audit")
        event = await connection.fetchval("SELECT type FROM betimes.outbox")
    assert act is not None
    assert (act["action"], shop.role in act["actor"], event) == ("runs.create", True, "run.queued")


async def test_what_cannot_be_made_is_put_aside_and_stops_nobody(
    desk: Desk, dsn: str, buyer: asyncpg.Connection
) -> None:
    async with buyer.transaction():
        bad, _ = await ask(buyer, "bad")
        good, _ = await ask(buyer, "good")
    async with owner(dsn) as connection:
        await connection.execute("UPDATE betimes.intake SET queue = 'a:b' WHERE id = $1", str(bad))
    taken = await take_all_in(desk)

    assert (taken.made, [run for run, _ in taken.refused]) == (1, [bad])
    assert (await get_run(desk, TENANT, good)).state is Shown.QUEUED
    assert (await take_all_in(desk)).total == 0


async def test_several_coordinators_make_each_run_once(
    desk: Desk, dsn: str, buyer: asyncpg.Connection
) -> None:
    async with buyer.transaction():
        runs = [(await ask(buyer, "one"))[0] for _ in range(50)]
    passes = await asyncio.gather(*(take_all_in(desk) for _ in range(4)))

    assert sum(taken.made for taken in passes) == 50
    async with owner(dsn) as connection:
        made = await connection.fetch("SELECT id FROM betimes.runs ORDER BY id")
        carried = await connection.fetch(
            "SELECT unnest(run_ids) AS id FROM betimes.parcels ORDER BY 1"
        )
    assert [row["id"] for row in made] == [row["id"] for row in carried] == sorted(runs)


def test_a_role_replaces_the_login_of_an_address() -> None:
    assert as_role("postgresql://a:b@h:1/db?x=1", "shop") == "postgresql://shop:shop@h:1/db?x=1"
