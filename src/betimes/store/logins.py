"""The login of the service, where the service itself is the one who makes it."""

from betimes.config.settings import DatabaseSettings
from betimes.store.ask import one
from betimes.store.faults import translated
from betimes.store.pool import Address, close, connect
from betimes.store.queries import load

SQL = load("logins")
SERVICE_LOGIN = "betimes_service"


async def ensure_login(owner_dsn: str, settings: DatabaseSettings, *, password: str) -> None:
    """Make or mend the login of the service, as the owner of a migrated schema."""
    with translated():
        connection = await connect(Address(owner_dsn, pooled=False), settings)
        try:
            await one(connection, SQL["ensure_login"], login=SERVICE_LOGIN, password=password)
        finally:
            await close(connection)
