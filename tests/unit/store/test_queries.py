"""A file of statements is read as it stands, or refused with its name."""

import pytest

from betimes.domain.errors import Bug
from betimes.store.queries import Query, load, nouns, parse

GOOD = """-- About shards.

-- name: renew_shards :many
-- Renew what one owner holds,
-- as long as it holds it.
-- Index: shards_pkey, shards_owner_idx
-- Guard: owner and epoch
-- Scatter: an owner does not know what it has lost
-- Returns: shard int2, epoch int8
UPDATE betimes.shards SET lease_until = :now::timestamptz + :ttl::interval
 WHERE owner = :owner::uuid  -- :nobody knows :this
   AND shard = ANY(:shards::smallint[]) AND lease_until > :now::timestamptz
RETURNING shard, epoch;

-- name: forget :exec
-- Forget one shard.
DELETE FROM betimes.shards WHERE shard = :shard::smallint;
"""


def one(body: str, *, kind: str = "exec", name: str = "probe") -> Query:
    return parse(f"-- name: {name} :{kind}\n{body}")[name]


def test_every_part_of_a_header_is_kept() -> None:
    query = parse(GOOD)["renew_shards"]
    assert query.kind == "many"
    assert query.sentence == "Renew what one owner holds, as long as it holds it."
    assert query.indexes == ("shards_pkey", "shards_owner_idx")
    assert query.guard == "owner and epoch"
    assert query.scatter == "an owner does not know what it has lost"
    assert query.returns == (("shard", "int2"), ("epoch", "int8"))
    assert set(parse(GOOD)) == {"renew_shards", "forget"}


def test_parameters_are_numbered_by_first_appearance_and_casts_are_left_alone() -> None:
    query = parse(GOOD)["renew_shards"]
    assert query.parameters == ("now", "ttl", "owner", "shards")
    assert "lease_until = $1::timestamptz + $2::interval" in query.text
    assert "lease_until > $1::timestamptz" in query.text


def test_comments_never_reach_the_server() -> None:
    query = parse(GOOD)["renew_shards"]
    assert "--" not in query.text
    assert not {"nobody", "this"} & set(query.parameters)


def test_arguments_follow_the_order_of_the_driver() -> None:
    query = one("-- Probe.\nSELECT set_config(:name::text, :value::text, true)")
    assert query.arguments({"value": "b", "name": "a"}) == ["a", "b"]


@pytest.mark.parametrize("given", [{}, {"name": "a"}, {"name": "a", "value": "b", "more": 1}])
def test_missing_and_unknown_arguments_never_reach_the_network(given: dict[str, object]) -> None:
    query = one("-- Probe.\nSELECT set_config(:name::text, :value::text, true)")
    with pytest.raises(Bug, match="probe: missing"):
        query.arguments(given)


def test_a_note_may_go_on_in_a_second_line() -> None:
    query = one("-- Probe.\n-- Returns: a int4\n-- Returns: b text\nSELECT 1, 'x'", kind="one")
    assert query.returns == (("a", "int4"), ("b", "text"))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("SELECT 1;\n-- name: a :exec\n-- It.\nSELECT 1", "before the first"),
        ("-- name: a :exec\n-- It.\nSELECT 1;\n-- name: a :exec\n-- It.\nSELECT 1", "twice"),
        ("-- name: a :some\n-- It.\nSELECT 1", "expected one of one, maybe, many, exec"),
        ("-- name: a :exec\nSELECT 1", "no sentence"),
        ("-- name: a :exec\n-- Index: b\nSELECT 1", "no sentence"),
        ("-- name: a :exec\n-- It.\n", "one statement"),
        ("-- name: a :exec\n-- It.\nSELECT 1; SELECT 2", "one statement"),
        ("-- name: a :one\n-- It.\nSELECT 1", "Returns"),
        ("-- name: a :exec\n-- It.\n-- Returns: b int4\nSELECT 1", "Returns"),
        ("-- name: a :one\n-- It.\n-- Returns: b\nSELECT 1", "`name type`"),
        ("-- name: a :exec\n-- It.\n-- Yields: b int4\nSELECT 1", "Yields"),
        ("-- name a :exec\n-- It.\nSELECT 1", "before the first"),
    ],
)
def test_every_fault_of_a_file_is_told_with_its_name(source: str, complaint: str) -> None:
    with pytest.raises(Bug, match=r"jobs\.sql") as told:
        parse(source, file="jobs.sql")
    assert complaint in str(told.value)


def test_every_file_of_ours_can_be_read() -> None:
    assert {"migrations", "partitions", "server"} <= set(nouns())
    for noun in nouns():
        assert load(noun)


def test_names_are_unique_across_nouns() -> None:
    names = [name for noun in nouns() for name in load(noun)]
    assert len(names) == len(set(names))
