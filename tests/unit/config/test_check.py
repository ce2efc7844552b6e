"""Settings that make no sense together are refused with the reason."""

from dataclasses import replace
from datetime import timedelta

import pytest

from betimes.config import Settings
from betimes.config.check import advice, cross_problems

SECOND = timedelta(seconds=1)
DEFAULTS = Settings()


def test_the_defaults_agree_with_each_other() -> None:
    assert cross_problems(DEFAULTS) == []
    assert advice(DEFAULTS) == []


@pytest.mark.parametrize(
    ("group", "changes", "start"),
    [
        ("coordinator", {"lease_ttl": 6 * SECOND}, "coordinator.lease_ttl: expected more"),
        ("coordinator", {"margin": 7 * SECOND}, "coordinator.margin: expected more than"),
        ("coordinator", {"horizon": 15 * SECOND}, "coordinator.horizon: expected more than"),
        ("worker", {"lease_ttl": 15 * SECOND}, "worker.lease_ttl: expected more"),
        ("worker", {"queues": ("*", "a")}, "worker.queues: expected `*` alone"),
        ("database", {"lock_timeout": 5 * SECOND}, "database.lock_timeout: expected less"),
        ("database", {"statement_timeout": 6 * SECOND}, "database.statement_timeout: expected at"),
        ("database", {"listen_dsn": "postgresql://h/d"}, "database.listen_dsn: expected"),
        ("server", {"restart_delay": 31 * SECOND}, "server.restart_delay: expected at most"),
        ("api", {"tenant_busy_max": 251}, "api.tenant_busy_max: expected at most half of"),
    ],
)
def test_a_contradiction_is_a_sentence(group: str, changes: dict[str, object], start: str) -> None:
    part = replace(getattr(DEFAULTS, group), **changes)
    (problem,) = cross_problems(replace(DEFAULTS, **{group: part}))
    assert problem.startswith(start)
    assert problem.endswith(".")


def test_what_works_but_is_hardly_meant_is_remarked() -> None:
    settings = replace(
        DEFAULTS,
        database=replace(DEFAULTS.database, dsn="postgresql://h/d", pgbouncer=True),
        server=replace(DEFAULTS.server, unsafe=True),
        embedded=replace(DEFAULTS.embedded, port=5433),
    )
    assert cross_problems(settings) == []
    assert [remark.partition(":")[0] for remark in advice(settings)] == [
        "database.listen_dsn",
        "server.unsafe",
        "embedded.port",
    ]
