"""Whether the database keeps what it has acknowledged, and whether we know its version."""

from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("server")
OLDEST_MAJOR, NEWEST_MAJOR = 15, 18
MUST_BE = {
    "fsync": {"on"},
    "full_page_writes": {"on"},
    # `local` and `remote_write` acknowledge before the standby has it on disk.
    "synchronous_commit": {"on", "remote_apply"},
}


async def complaints(database: Database) -> list[str]:
    """Why an acknowledged write could be lost here; empty means durable."""
    rows = await database.many(SQL["read_durability"], lane=Lane.ENGINE)
    return complaints_of({row["name"]: row["setting"] for row in rows})


def complaints_of(settings: dict[str, str]) -> list[str]:
    """The same for settings already read."""
    return [
        f"expected {name} to be {' or '.join(sorted(allowed))}, got {settings.get(name)!r}: "
        "acknowledged work could be lost in a crash"
        for name, allowed in MUST_BE.items()
        if settings.get(name) not in allowed
    ]


def version_complaint(server_version: int) -> str | None:
    """A sentence when the server is too old for us."""
    major = server_version // 10_000
    if major < OLDEST_MAJOR:
        return f"expected PostgreSQL {OLDEST_MAJOR} to {NEWEST_MAJOR}, got {major}"
    return None
