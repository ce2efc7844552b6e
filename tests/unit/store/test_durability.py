"""Settings under which an acknowledged write can be lost are told, one sentence each."""

import pytest

from betimes.store.durability import complaints_of, version_complaint

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}


def test_a_durable_server_has_no_complaints() -> None:
    assert complaints_of(DURABLE) == []
    assert complaints_of(DURABLE | {"synchronous_commit": "remote_apply"}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("synchronous_commit", "off"),
        ("synchronous_commit", "local"),
        ("synchronous_commit", "remote_write"),
    ],
)
def test_each_weak_setting_is_named_with_what_was_got(name: str, value: str) -> None:
    [complaint] = complaints_of(DURABLE | {name: value})
    assert name in complaint
    assert repr(value) in complaint


def test_a_setting_that_cannot_be_read_is_not_taken_for_granted() -> None:
    assert len(complaints_of({})) == len(DURABLE)


def test_versions() -> None:
    assert version_complaint(150_019) is None
    assert version_complaint(180_004) is None
    assert "got 14" in str(version_complaint(140_011))
