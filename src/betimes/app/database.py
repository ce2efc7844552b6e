"""Getting at a database: the embedded one or the given one, at the right version, and durable."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from betimes.app.dice import Dice
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.domain.errors import Refused, Unavailable
from betimes.embedded import EmbeddedPostgres, default_data, find_binaries
from betimes.rhythm import Stopping, first_of
from betimes.store import durability, logins
from betimes.store import migrate as migrations
from betimes.store.database import Database
from betimes.store.logins import SERVICE_LOGIN

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is; `direct_dsn` goes around any pooler.

    `owner_dsn` is for those who migrate. The service itself does not log in as a superuser where it
    makes its own login, which is on the embedded server.
    """

    dsn: str
    direct_dsn: str
    owner_dsn: str
    embedded: EmbeddedPostgres | None


@asynccontextmanager
async def located(settings: Settings, *, clock: Clock, dice: Dice) -> AsyncIterator[Place]:
    """The given database, or the embedded one, started now and stopped afterwards."""
    database = settings.database
    if database.dsn is not None:
        direct = database.listen_dsn or database.dsn
        yield Place(database.dsn, direct, direct, None)
        return
    wanted = settings.embedded
    postgres = EmbeddedPostgres(
        data=wanted.data or default_data(wanted.home / "betimes"),
        clock=clock,
        password_factory=dice.secret,
        binaries=find_binaries(wanted.binaries),
        listen=wanted.listen,
        port=wanted.port,
    )
    async with postgres:
        dsn = postgres.service_dsn(SERVICE_LOGIN)
        yield Place(dsn, dsn, postgres.dsn(), postgres)


async def migrate(
    settings: Settings, place: Place, *, clock: Clock, progress: Progress
) -> list[str]:
    """Bring the database to this release; the names of what was applied."""
    direct = replace(settings.database, pgbouncer=_through_pooler(settings, place))
    return await migrations.migrate(
        place.owner_dsn, direct, shards=settings.shards.count, clock=clock, progress=progress
    )


async def version_complaints(settings: Settings, place: Place) -> list[str]:
    """Why this release and that schema do not go together."""
    direct = replace(settings.database, pgbouncer=_through_pooler(settings, place))
    return await migrations.complaints(place.owner_dsn, direct)


@asynccontextmanager
async def opened(
    settings: Settings, place: Place, *, clock: Clock, dice: Dice
) -> AsyncIterator[Database]:
    """The pools, closed afterwards; needs a schema of this release."""
    await ensure_login(settings, place)
    database = await Database.open(settings.database, dsn=place.dsn, clock=clock, roll=dice.roll)
    try:
        yield database
    finally:
        await database.close()


async def ensure_login(settings: Settings, place: Place) -> None:
    """Make the login of the service where that is ours to do; older data gets one, too."""
    if place.embedded is not None:
        password = place.embedded.service_password()
        await logins.ensure_login(place.owner_dsn, settings.database, password=password)


async def safety_complaints(database: Database) -> list[str]:
    """Why acknowledged work could be lost here, or why we do not know the server."""
    too_old = durability.version_complaint(database.server_version)
    return ([too_old] if too_old else []) + await durability.complaints(database)


async def require_schema(settings: Settings, place: Place) -> None:
    """Refuse a database whose schema is not ours; asked before the pools, which need its roles."""
    if problems := await version_complaints(settings, place):
        raise Refused(_sentences(problems))


async def require_safety(settings: Settings, database: Database) -> list[str]:
    """Refuse a database that may lose work; returns what `--unsafe` let pass."""
    doubts = await safety_complaints(database)
    if doubts and not settings.server.unsafe:
        raise Refused(_sentences([*doubts, "to serve on it nevertheless, say --unsafe"]))
    return doubts


class EmbeddedKeeper:
    """A role that watches the embedded PostgreSQL and brings it back when it is gone."""

    def __init__(self, *, postgres: EmbeddedPostgres) -> None:
        self._postgres = postgres

    async def run(self, stopping: Stopping) -> None:
        """Start what is not running; crash with its last words when it goes."""
        await self._postgres.start()
        gone: list[str] = []

        async def watch() -> None:
            gone.append(await self._postgres.watch())

        await first_of(stopping.wait(), watch())
        if gone and not stopping.requested:
            raise Unavailable(gone[0])


def _through_pooler(settings: Settings, place: Place) -> bool:
    return settings.database.pgbouncer and place.direct_dsn == place.dsn


def _sentences(complaints: list[str]) -> str:
    return "\n".join(f"{text[:1].upper()}{text[1:]}." for text in complaints)
