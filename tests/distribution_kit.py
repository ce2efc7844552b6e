"""Whether a statement could also run on a distributed PostgreSQL; read, not run.

A table with a column `shard` is sharded. A statement names the shard of every sharded table it
touches, directly (`shard = $1`), through a list (`= ANY`, a join with `unnest`), or through another
table it joins on `shard`. Touching several shards, or all of them, needs a note `-- Scatter:` with
the reason; then it may read, and may change rows only behind a guard, but never with SKIP LOCKED.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from betimes.store.queries import Query

REFERENCE_TABLES = frozenset(
    {
        *("cluster", "migrations", "tenants", "api_keys", "queues", "members", "calendars"),
        *("sessions", "device_grants", "data_keys", "secrets", "handler_schemas", "producers"),
        "quota_news",
        *("limits", "breakers", "endpoints", "routings", "alert_rules", "silences"),
        *("nodes", "workers", "aged_days"),
    }
)
CONTROL_TABLES = frozenset({"shards"})
"""Leases of shards: a small row for each, kept together, so that one statement renews them all."""
TRIGGERS_ALLOWED_IN = frozenset({"0176_expand_kept_rows"})
"""Theirs stand on days that are about to be dropped, where nothing on time is written."""
ADVISORY_LOCKS_ALLOWED_IN = frozenset({"migrations"})
FORBIDDEN_IN_MIGRATIONS = {
    "a trigger": re.compile(r"(?i)\bCREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?TRIGGER\b"),
    "MERGE": re.compile(r"(?i)\bMERGE\s+INTO\b"),
    "an advisory lock": re.compile(r"(?i)\bpg_(try_)?advisory_"),
    "a rule": re.compile(r"(?i)\bCREATE\s+(OR\s+REPLACE\s+)?RULE\b"),
}
# Functions of a time whose answer depends on a setting of the session.
STABLE = (
    exp.Add,
    exp.Sub,
    exp.TimestampTrunc,
    exp.DateTrunc,
    exp.Extract,
    exp.ToChar,
    exp.AtTimeZone,
)

ONE, SEVERAL, ALL = "one", "several", "all"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The columns of every table of ours, with their types."""

    columns: Mapping[str, Mapping[str, str]]

    def is_sharded(self, table: str) -> bool:
        return "shard" in self.columns.get(table, ())

    def is_time(self, table: str, column: str) -> bool:
        return self.columns.get(table, {}).get(column) == "timestamp with time zone"


def complaints_of_migration(text: str, name: str = "") -> list[str]:
    """What no migration may contain."""
    return [
        f"it has {what}"
        for what, found in FORBIDDEN_IN_MIGRATIONS.items()
        if found.search(text) and not (what == "a trigger" and name in TRIGGERS_ALLOWED_IN)
    ]


def complaints_of(query: Query, catalogue: Catalogue, *, noun: str = "") -> list[str]:
    """Why a distributed PostgreSQL would refuse the statement, or make it slow in secret."""
    tree = sqlglot.parse_one(query.text, read="postgres")
    return [
        f"{query.name}: {complaint}"
        for complaint in (
            *_forbidden(tree, noun),
            *_inserts(tree, catalogue),
            *_reach(query, tree, catalogue),
            *_skip_locked(tree, catalogue),
            *_computed_times(tree, catalogue),
        )
    ]


def _forbidden(tree: Any, noun: str) -> Iterator[str]:
    if tree.find(exp.Merge):
        yield "MERGE; use INSERT … ON CONFLICT"
    called = {str(one.this).lower() for one in tree.find_all(exp.Anonymous)}
    if noun not in ADVISORY_LOCKS_ALLOWED_IN and any("advisory" in name for name in called):
        yield "an advisory lock holds on one node only"


def _inserts(tree: Any, catalogue: Catalogue) -> Iterator[str]:
    for insert in tree.find_all(exp.Insert):
        table = insert.find(exp.Table).name
        if not catalogue.is_sharded(table):
            continue
        columns = {one.name for one in getattr(insert.this, "expressions", [])}
        if "shard" not in columns:
            yield f"inserts into {table} without a shard"
        conflict = insert.args.get("conflict")
        keys = (
            {one.name for one in (conflict.args.get("conflict_keys") or [])} if conflict else set()
        )
        if keys and "shard" not in {*keys, *_names(conflict)}:
            yield f"decides conflicts of {table} without the shard"


def _names(conflict: Any) -> set[str]:
    keys = conflict.args.get("conflict_keys") or []
    return {column.name for key in keys for column in key.find_all(exp.Column)}


def _reach(query: Query, tree: Any, catalogue: Catalogue) -> Iterator[str]:
    reached = [
        (table, reach, isinstance(node, exp.Update | exp.Delete))
        for node in tree.find_all(exp.Select, exp.Update, exp.Delete)
        for table, reach in _reach_of(node, catalogue)
    ]
    wide = [(table, writes) for table, reach, writes in reached if reach != ONE]
    if not query.scatter:
        for table, reach, _ in reached:
            if reach != ONE:
                yield f"touches {reach} shards of {table} without saying why in a Scatter note"
    elif not wide:
        yield "has a Scatter note, but touches one shard only"
    elif any(writes for _, writes in wide) and not query.guard:
        yield "changes rows of several shards without a guard"


def _reach_of(node: Any, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Each sharded table a node reads or changes itself, and how many shards of it."""
    sources = list(_sources(node))
    tables = {
        source.alias_or_name: source.name
        for source in sources
        if isinstance(source, exp.Table)
        and source.db == "betimes"
        and catalogue.is_sharded(source.name)
    }
    reach = dict.fromkeys(tables, ALL)
    joined: list[tuple[str, str]] = []
    for left, right in _shard_equalities(node, sources):
        for this, other in ((left, right), (right, left)):
            name = _shard_of(this, tables)
            if name is None:
                continue
            partner = _shard_of(other, tables)
            if partner is not None:
                joined.append((name, partner))
            elif reach[name] != ONE:
                reach[name] = ONE if _is_one(other) else SEVERAL
    _spread(reach, joined)
    yield from ((tables[name], how) for name, how in reach.items())


def _spread(reach: dict[str, str], joined: list[tuple[str, str]]) -> None:
    """What is joined on `shard` reaches no further than what it is joined with."""
    order = (ONE, SEVERAL, ALL)
    for _ in reach:
        for left, right in joined:
            best = min(reach[left], reach[right], key=order.index)
            reach[left] = reach[right] = best


def _sources(node: Any) -> Iterator[Any]:
    if isinstance(node, exp.Update | exp.Delete):
        yield node.this
    for part in (node.args.get("from_"), *(node.args.get("joins") or [])):
        if part is not None:
            yield part.this
            yield from (join.this for join in part.this.args.get("joins") or [])
    yield from node.args.get("using") or []


def _shard_equalities(node: Any, sources: list[Any]) -> Iterator[tuple[Any, Any]]:
    conditions = [node.args["where"].this] if node.args.get("where") else []
    joins = [*(node.args.get("joins") or [])]
    for source in sources:
        joins += source.args.get("joins") or []
    for join in joins:
        if join.args.get("on") is not None:
            conditions.append(join.args["on"])
        if "shard" in {one.name for one in join.args.get("using") or []}:
            for source in sources:
                if source is not join.this:
                    yield (
                        exp.column("shard", source.alias_or_name),
                        exp.column("shard", join.this.alias_or_name),
                    )
    for condition in conditions:
        for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            if isinstance(part, exp.EQ):
                yield part.this, part.expression


def _shard_of(side: Any, tables: Mapping[str, str]) -> str | None:
    """The table whose `shard` this side of an equality is, if it is one of them."""
    if not isinstance(side, exp.Column) or side.name != "shard":
        return None
    if side.table:
        return side.table if side.table in tables else None
    return next(iter(tables)) if len(tables) == 1 else None


def _is_one(side: Any) -> bool:
    while isinstance(side, exp.Cast | exp.Paren):
        side = side.this
    return isinstance(side, exp.Parameter | exp.Literal)


def _skip_locked(tree: Any, catalogue: Catalogue) -> Iterator[str]:
    for lock in tree.find_all(exp.Lock):
        if lock.args.get("wait") is not False:
            continue
        select = lock.parent
        reach = dict(_reach_of(select, catalogue))
        wide = [table for table, how in reach.items() if how != ONE]
        if not set(wide) <= CONTROL_TABLES or not reach:
            yield "SKIP LOCKED over more than one shard"
        holder = select.parent
        if not isinstance(holder, exp.CTE) or not holder.args.get("materialized"):
            yield "SKIP LOCKED outside WITH … AS MATERIALIZED may run once per outer row"


def _computed_times(tree: Any, catalogue: Catalogue) -> Iterator[str]:
    for node in tree.find_all(exp.Update, exp.OnConflict):
        changed: Any = (node if isinstance(node, exp.Update) else node.parent).find(exp.Table)
        for assignment in node.expressions:
            for column in assignment.expression.find_all(exp.Column):
                if catalogue.is_time(changed.name, column.name) and column.find_ancestor(*STABLE):
                    to = assignment.this.name
                    yield f"computes {to} from {column.name} with a STABLE function"
