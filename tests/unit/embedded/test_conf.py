"""The settings of the embedded server, as text."""

import pytest

from betimes.domain.errors import BadSetting
from betimes.embedded.conf import buffers_mebibytes, checked, loopback, quoted, render

GIBIBYTE = 2**30


def lines(**changes: object) -> list[str]:
    wishes = {"memory_bytes": 8 * GIBIBYTE, "linux": True, "unsafe_no_fsync": False, "settings": {}}
    return render(**(wishes | changes)).splitlines()  # type: ignore[arg-type]


def test_durable_unless_told_otherwise() -> None:
    assert {"fsync = 'on'", "full_page_writes = 'on'", "synchronous_commit = 'on'"} <= set(lines())
    assert "fsync = 'off'" in lines(unsafe_no_fsync=True)


def test_compression_is_one_that_every_build_knows() -> None:
    """lz4 and zstd keep the wheels' server from starting."""
    assert "wal_compression = 'pglz'" in lines()
    assert not any("lz4" in line or "zstd" in line for line in lines())


@pytest.mark.parametrize(
    ("memory", "expected"), [(GIBIBYTE // 4, 64), (4 * GIBIBYTE, 512), (64 * GIBIBYTE, 1024)]
)
def test_buffers_are_an_eighth_of_the_memory_within_bounds(memory: int, expected: int) -> None:
    assert buffers_mebibytes(memory) == expected


def test_the_callers_setting_replaces_ours() -> None:
    said = lines(settings={"max_connections": "7"})
    assert [line for line in said if line.startswith("max_connections")] == [
        "max_connections = '7'"
    ]


def test_values_are_quoted_as_the_server_reads_them() -> None:
    assert quoted("it's \\ fine") == r"'it''s \\ fine'"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("port", "1", "port is managed by betimes"),
        ("fsync", "off", "fsync is managed by betimes"),
        ("work mem", "1MB", "expected the name of a PostgreSQL setting, got 'work mem'"),
        ("work_mem", "1MB\nfsync=off", "expected one printable line for work_mem"),
    ],
)
def test_bad_settings_are_named(name: str, value: str, sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        checked({name: value})


@pytest.mark.parametrize(
    "address", ["localhost", "127.0.0.1", "::1", "127.0.0.1, ::1", "127.9.9.9"]
)
def test_this_machine_may_be_listened_on(address: str) -> None:
    assert loopback(address) == address


@pytest.mark.parametrize("address", ["*", "0.0.0.0", "10.0.0.1", "example.org", "127.0.0.1,::"])  # noqa: S104
def test_other_machines_may_not(address: str) -> None:
    with pytest.raises(BadSetting, match="expected localhost"):
        loopback(address)
