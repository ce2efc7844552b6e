"""A cluster of an older major version is refused as it is, and carried over when asked."""

from pathlib import Path

import pytest

from betimes.domain.errors import Conflict, Refused
from betimes.embedded import find_binaries
from betimes.embedded.upgrade import upgrade
from embedded_kit import Place

pytestmark = pytest.mark.db
OLD, NEW = 16, 18


@pytest.fixture
def both(empty_place: Place) -> tuple[Place, Place]:
    """The same empty place, seen by an older and by a newer PostgreSQL."""
    return with_major(empty_place, OLD), with_major(empty_place, NEW)


async def test_an_old_cluster_is_refused_untouched_then_upgraded_with_its_rows(
    both: tuple[Place, Place],
) -> None:
    """As root and as anybody: rows and password come along, the old cluster is kept."""
    older, newer = both
    async with older.server() as server:
        older.query(server.dsn(), "create table t as select generate_series(1, 1000) as n")
    before = contents(older.cluster)
    with pytest.raises(Conflict, match=r"PostgreSQL 16.*PostgreSQL 18.*left untouched"):
        await newer.server().start()
    assert contents(older.cluster) == before

    kept = upgrade(newer.data, new=newer.binaries)

    async with newer.server() as server:
        assert newer.query(server.dsn(), "select sum(n) from t") == "500500"
        assert newer.query(server.dsn(), "show server_version_num").startswith("18")
    assert (kept / "PG_VERSION").read_text() == "16\n"
    with pytest.raises(Conflict, match="got PostgreSQL 18"):
        upgrade(newer.data, new=newer.binaries)


async def test_an_exchange_killed_between_its_renames_is_completed(place: Place) -> None:
    """The next start must never take the gap for an empty directory."""
    async with place.server() as server:
        place.query(server.dsn(), "create table t as select 42 as n")
    place.cluster.rename(place.data / "pg.new")
    (place.data / "pg.old-16").mkdir()
    async with place.server() as server:
        assert place.query(server.dsn(), "select n from t") == "42"


async def test_a_running_cluster_is_not_upgraded(place: Place) -> None:
    async with place.server():
        with pytest.raises(Conflict, match="in use by process"):
            upgrade(place.data)


def with_major(place: Place, major: int) -> Place:
    try:
        return Place(place.root, find_binaries(major=major), place.passwords)
    except Refused:
        pytest.skip(f"there is no PostgreSQL {major} here")


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
