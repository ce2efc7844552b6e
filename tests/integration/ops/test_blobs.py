"""Large things: sealed, wherever they are kept."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from betimes.domain.errors import Bug, Invalid, Locked, NotFound
from betimes.domain.ids import from_text, shard_of
from betimes.domain.run import NewRun
from betimes.janitor.clear import Clearer
from betimes.ops import NewJob, create_job
from betimes.ops.blobs import forget_objects, get_blob, keep_blob, new_blob, read_reference
from betimes.ops.desk import Desk
from betimes.ops.end import delete_job
from betimes.ops.enqueue import enqueue_run
from betimes.ops.rotation import reseal_some, rotate_key
from betimes.ops.runs import cancel_run
from betimes.ops.shelf import Shelf
from betimes.store.database import Database
from betimes.store.directory import DirectoryShelf
from betimes.store.seal import PIECE_BYTES
from betimes.target.answer import Patience
from betimes.target.s3 import S3Shelf
from betimes.target.sigv4 import Credentials
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from integration.janitor.test_prune_words import pruner
from ops_kit import HOUR, OTHER, TENANT, every, fetch, make_desk, once
from target_kit import Received, a_client, a_target, answer

CANARY = b"canary-5b8e2f91"
LARGE = CANARY * (2 * PIECE_BYTES // len(CANARY) + 1)
DAY = 24 * HOUR


async def objects(received: Received, writer: asyncio.StreamWriter, kept: dict[str, bytes]) -> None:
    """As much of an object store as is asked for; signatures are another test's business."""
    assert received.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=me/")
    if received.method == "PUT":
        kept[received.path] = received.body
        writer.write(answer(200, b""))
    elif received.method == "DELETE":
        kept.pop(received.path, None)
        writer.write(answer(204, b""))
    elif received.path in kept:
        writer.write(answer(200, kept[received.path]))
    else:
        writer.write(answer(404, b""))


@pytest.fixture(params=["database", "directory", "s3"])
async def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shelf | None]:
    """Each place where blobs can be kept."""
    if request.param == "database":
        yield None
    elif request.param == "directory":
        yield DirectoryShelf(tmp_path / "blobs")
    else:
        kept: dict[str, bytes] = {}

        async def serve(received: Received, writer: asyncio.StreamWriter) -> None:
            await objects(received, writer, kept)

        async with a_target(behave=serve) as store, a_client() as client:
            yield S3Shelf(
                client=client,
                clock=RealClock(),
                endpoint=store.url("").rstrip("/"),
                bucket="bucket",
                prefix="betimes/",
                credentials=Credentials(access_key="me", secret_key="hush"),  # noqa: S106
                patience=Patience(total=10.0),
            )


@pytest.fixture
def desk(database: Database, clock: ManualClock, shelf: Shelf | None) -> Desk:
    return make_desk(database, clock, shelf=shelf)


async def keep(desk: Desk, content: bytes, **more: object) -> str:
    blob = new_blob(desk, content, media_type="text/plain", **more)  # type: ignore[arg-type]
    return await keep_blob(desk, TENANT, blob)


def identity(reference: str) -> UUID:
    return from_text("blob", reference)


async def bytes_of(desk: Desk, reference: str) -> bytes:
    """What lies where it is kept."""
    (row,) = await fetch(
        desk.database,
        "SELECT content, location FROM betimes.blobs WHERE id = $1",
        identity(reference),
    )
    if desk.shelf is None:
        assert row["location"] is None
        return bytes(row["content"])
    assert row["content"] is None
    scheme, _, name = row["location"].partition(":")
    assert scheme == desk.shelf.scheme
    return await desk.shelf.get(name) or b""


@pytest.mark.parametrize("content", [b"", b"x", CANARY, LARGE], ids=["none", "one", "few", "many"])
async def test_what_is_kept_comes_back_and_is_sealed(desk: Desk, content: bytes) -> None:
    """In pieces, if it is large."""
    reference = await keep(desk, content)
    assert await read_reference(desk, TENANT, reference) == content
    lies = await bytes_of(desk, reference)
    assert len(lies) > len(content)
    assert CANARY not in lies


async def test_it_belongs_to_its_tenant(desk: Desk) -> None:
    reference = await keep(desk, CANARY)
    with pytest.raises(NotFound):
        await read_reference(desk, OTHER, reference)
    for nothing in ("blob_01JD00000000000000000000ZZ", "run_01JD00000000000000000000ZZ", "x"):
        with pytest.raises(NotFound):
            await read_reference(desk, TENANT, nothing)


async def test_one_that_is_put_in_the_place_of_another_does_not_open(desk: Desk) -> None:
    """Wherever somebody has swapped them."""
    one, other = await keep(desk, CANARY), await keep(desk, b"other")
    if desk.shelf is None:
        await fetch(
            desk.database,
            "UPDATE betimes.blobs SET content = (SELECT content FROM betimes.blobs WHERE id = $1) "
            "WHERE id = $2",
            identity(one),
            identity(other),
        )
    else:
        swapped = await bytes_of(desk, one)
        await desk.shelf.put(f"{TENANT}/{identity(other)}.1", swapped)
    with pytest.raises(Locked):
        await read_reference(desk, TENANT, other)


async def test_it_is_kept_as_long_as_its_class_says(desk: Desk, clock: ManualClock) -> None:
    """Or as long as it says itself; expired it is not shown, and then it is removed."""
    brief, standard = await keep(desk, b"a", retention="brief"), await keep(desk, b"b")
    own = await keep(desk, b"c", ttl=timedelta(hours=1))
    clock.advance(2 * HOUR)
    with pytest.raises(NotFound):
        await read_reference(desk, TENANT, own)
    assert await read_reference(desk, TENANT, brief) == b"a"
    clock.advance(DAY)
    with pytest.raises(NotFound):
        await read_reference(desk, TENANT, brief)
    assert (await get_blob(desk, TENANT, identity(standard))).retention == "standard"
    clearer = Clearer(desk=desk, clock=clock, telemetry=Telemetry(clock=clock), every=HOUR)
    assert await clearer.tick() == (0 if desk.shelf is None else 2)
    assert await clearer.tick() == 0
    if desk.shelf is not None:
        assert await desk.shelf.get(f"{TENANT}/{identity(brief)}.1") is None
        assert await desk.shelf.get(f"{TENANT}/{identity(standard)}.1") is not None
    for wrong in ({"retention": "for ever"}, {"ttl": timedelta(0)}, {"ttl": timedelta(days=9_999)}):
        with pytest.raises(Invalid):
            await keep(desk, b"d", **wrong)


ENDED = "UPDATE betimes.runs SET state = 5, finished_at = coalesce(finished_at, due_at)"


async def test_it_is_kept_while_something_that_has_not_ended_needs_it(
    desk: Desk, clock: ManualClock
) -> None:
    """A run that waits, a job that fires, a one-off whose run waits, a dead letter; no other."""
    ends = [await keep(desk, b"%d" % number, retention="brief") for number in range(6)]
    waits, ended, fires, last, died, nobody = ends
    await enqueue_run(desk, TENANT, NewRun(handler="h", options={"payload_ref": waits}))
    gone = await enqueue_run(desk, TENANT, NewRun(handler="h", options={"payload_ref": ended}))
    await cancel_run(desk, TENANT, gone)
    job = await create_job(
        desk, TENANT, NewJob(definition=every(60, options={"payload_ref": fires}))
    )
    clock.advance(1)
    at = clock.now() + timedelta(seconds=1)
    await create_job(desk, TENANT, NewJob(definition=once(at, options={"payload_ref": last})))
    dead = await enqueue_run(desk, TENANT, NewRun(handler="h", options={"payload_ref": died}))
    await fetch(desk.database, ENDED + " WHERE id = $1", dead)
    await fetch(
        desk.database,
        "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts, queue,"
        " handler, fingerprint, reason, error) VALUES ($1, $2, $3, $4, 1, 'default', 'h', 'f', 'r',"
        " '{}')",
        shard_of(dead),
        dead,
        TENANT,
        clock.now(),
    )
    clock.advance(2 * DAY)
    clearer = Clearer(desk=desk, clock=clock, telemetry=Telemetry(clock=clock), every=HOUR)
    needed = (waits, fires, last, died)
    for _ in range(3):
        for reference in needed:
            assert await read_reference(desk, TENANT, reference) == b"%d" % ends.index(reference)
        for reference in (ended, nobody):
            with pytest.raises(NotFound):
                await read_reference(desk, TENANT, reference)
        await clearer.tick()
        await pruner(desk.database, clock).tick()
        clock.advance(DAY)
    rows = await fetch(desk.database, "SELECT id FROM betimes.blobs")
    assert {row["id"] for row in rows} == {identity(reference) for reference in needed}
    await delete_job(desk, TENANT, job.id)
    await fetch(desk.database, ENDED)
    await fetch(desk.database, "UPDATE betimes.dead_letters SET state = 2")
    clock.advance(2 * DAY)
    await clearer.tick()
    await pruner(desk.database, clock).tick()
    assert await fetch(desk.database, "SELECT id FROM betimes.blobs") == []


async def test_a_new_data_key_seals_them_anew(desk: Desk, clock: ManualClock) -> None:
    """The old content goes, where it lies outside."""
    reference = await keep(desk, CANARY)
    before = await bytes_of(desk, reference)
    assert await rotate_key(desk, TENANT) == 2
    assert await reseal_some(desk, TENANT) == 1
    assert await bytes_of(desk, reference) != before
    assert await read_reference(desk, TENANT, reference) == CANARY
    if desk.shelf is not None:
        assert await desk.shelf.get(f"{TENANT}/{identity(reference)}.1") is None
    clock.advance(2 * HOUR)
    assert await reseal_some(desk, TENANT) == 0
    rows = await fetch(desk.database, "SELECT version FROM betimes.data_keys")
    assert [row["version"] for row in rows] == [2]


async def test_with_its_tenant_it_goes_from_where_it_is(desk: Desk) -> None:
    *_, reference = [await keep(desk, CANARY) for _ in range(3)]
    expected = 0 if desk.shelf is None else 3
    assert await forget_objects(desk, TENANT) == expected
    assert await forget_objects(desk, TENANT) == 0
    if desk.shelf is not None:
        with pytest.raises(NotFound):
            await read_reference(desk, TENANT, reference)


async def test_a_node_without_the_shelf_says_so(desk: Desk) -> None:
    if desk.shelf is None:
        return
    reference = await keep(desk, CANARY)
    with pytest.raises(Locked, match=desk.shelf.scheme):
        await read_reference(replace(desk, shelf=None), TENANT, reference)


async def test_what_was_kept_before_there_were_keys_is_still_there(desk: Desk) -> None:
    reference = await keep(replace(desk, shelf=None), b"x")
    await fetch(
        desk.database, "UPDATE betimes.blobs SET key_version = 0, content = $1", b"as it was"
    )
    assert await read_reference(desk, TENANT, reference) == b"as it was"


def test_no_name_leads_out_of_the_directory(tmp_path: Path) -> None:
    shelf = DirectoryShelf(tmp_path)
    for name in ("../x", "a/../../x", "/etc/passwd", "a/b", ""):
        with pytest.raises(Bug):
            shelf._place(name)
