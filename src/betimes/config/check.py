"""What must hold between settings; each broken rule is a sentence with its reason."""

import re
from collections.abc import Iterator

from betimes.config.duration import show_duration
from betimes.config.settings import Settings

RENEWALS_PER_LEASE = 3
PUBLIC_URL = re.compile(r"https?://[^/?#@\s]+(/[^?#\s]*)?")


def cross_problems(settings: Settings) -> list[str]:
    """Everything that makes no sense together."""
    return [
        *_database(settings),
        *_coordinator(settings),
        *_worker(settings),
        *_server(settings),
        *_api(settings),
    ]


def advice(settings: Settings) -> list[str]:
    """What works, and is probably not meant."""
    database = settings.database
    remarks = []
    if database.pgbouncer and database.listen_dsn is None:
        remarks.append(
            "database.listen_dsn: not given, so no hints arrive through pgbouncer and every wait "
            "lasts until the next poll."
        )
    if settings.server.unsafe:
        remarks.append("server.unsafe: acknowledged work may be lost when the machine stops.")
    if settings.embedded.port is not None and settings.embedded.listen is None:
        remarks.append("embedded.port: has no effect without embedded.listen.")
    return remarks


def _database(settings: Settings) -> Iterator[str]:
    database = settings.database
    if database.listen_dsn is not None and database.dsn is None:
        yield "database.listen_dsn: expected database.dsn beside it, got none."
    if database.lock_timeout >= database.statement_timeout:
        yield (
            "database.lock_timeout: expected less than database.statement_timeout "
            f"({show_duration(database.statement_timeout)}), "
            f"got {show_duration(database.lock_timeout)}."
        )
    if database.statement_timeout > database.transaction_timeout:
        yield (
            "database.statement_timeout: expected at most database.transaction_timeout "
            f"({show_duration(database.transaction_timeout)}), "
            f"got {show_duration(database.statement_timeout)}."
        )


def _coordinator(settings: Settings) -> Iterator[str]:
    coordinator = settings.coordinator
    if coordinator.lease_ttl <= RENEWALS_PER_LEASE * coordinator.renew_every:
        yield (
            "coordinator.lease_ttl: expected more than three times coordinator.renew_every "
            f"({show_duration(coordinator.renew_every)}), so that one lost renewal costs nothing, "
            f"got {show_duration(coordinator.lease_ttl)}."
        )
    covered = coordinator.lead + settings.database.transaction_timeout
    if coordinator.margin <= covered:
        yield (
            "coordinator.margin: expected more than coordinator.lead plus "
            f"database.transaction_timeout ({show_duration(covered)}), so that no run falls "
            f"between, got {show_duration(coordinator.margin)}."
        )
    # A job is planned when its next fire is nearer than half the horizon.
    ahead = 2 * (coordinator.margin + coordinator.plan_every)
    if coordinator.horizon <= ahead:
        yield (
            "coordinator.horizon: expected more than twice coordinator.margin plus "
            f"coordinator.plan_every ({show_duration(ahead)}), so that fires are planned before "
            f"they are due, got {show_duration(coordinator.horizon)}."
        )


def _worker(settings: Settings) -> Iterator[str]:
    worker = settings.worker
    if worker.lease_ttl <= RENEWALS_PER_LEASE * worker.heartbeat_every:
        yield (
            "worker.lease_ttl: expected more than three times worker.heartbeat_every "
            f"({show_duration(worker.heartbeat_every)}), so that one lost heartbeat costs nothing, "
            f"got {show_duration(worker.lease_ttl)}."
        )
    if "*" in worker.queues and len(worker.queues) > 1:
        yield "worker.queues: expected `*` alone or names, got both."


def _server(settings: Settings) -> Iterator[str]:
    server = settings.server
    if server.restart_delay > server.restart_delay_max:
        yield (
            "server.restart_delay: expected at most server.restart_delay_max "
            f"({show_duration(server.restart_delay_max)}), "
            f"got {show_duration(server.restart_delay)}."
        )


def _api(settings: Settings) -> Iterator[str]:
    public = settings.api.public_url
    if public is not None and not PUBLIC_URL.fullmatch(public):
        yield f"api.public_url: expected such as https://jobs.example.com, got {public[:100]!r}."
    api = settings.api
    if 2 * api.tenant_busy_max > api.busy_max:
        yield (
            f"api.tenant_busy_max: expected at most half of api.busy_max ({api.busy_max // 2}), "
            f"so that one tenant leaves room for others, got {api.tenant_busy_max}."
        )
