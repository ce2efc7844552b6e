"""What to do for runs of jobs: definitions by job and revision."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import asyncpg

from betimes.domain.ids import JobId, ShardId, shard_of
from betimes.domain.kept import Kept
from betimes.domain.spec import RunSpec, spec_from_json
from betimes.schedule.duration import read_duration
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("runs")
SPECS_BYTES_MAX = 32 << 20
AD_HOC_BYTES_MAX = 8 << 20
SPEC_BYTES = 1_500
"""What a definition weighs besides its texts and its payload."""


class SpecKey(NamedTuple):
    """A definition that never changes."""

    job: JobId
    revision: int


@dataclass(frozen=True, slots=True)
class Specs:
    """Definitions as they were when their runs were planned."""

    database: Database

    async def read(self, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
        """Every definition that can be found, shard by shard."""
        by_shard: dict[ShardId, list[SpecKey]] = {}
        for key in wanted:
            by_shard.setdefault(shard_of(key.job), []).append(key)
        found: dict[SpecKey, RunSpec] = {}
        for shard, keys in by_shard.items():
            found |= await self._read(shard, keys)
        return found

    async def _read(self, shard: ShardId, keys: list[SpecKey]) -> dict[SpecKey, RunSpec]:
        """Current definitions first, then those that were replaced; what is in neither is gone."""
        found = {
            SpecKey(row["id"], row["revision"]): spec_of(row)
            for row in await self._rows("read_specs", shard, keys)
        }
        missing = [key for key in keys if key not in found]
        if missing:
            for row in await self._rows("read_old_specs", shard, missing):
                found[SpecKey(row["id"], row["revision"])] = spec_of(row)
        return found

    async def _rows(self, name: str, shard: ShardId, keys: list[SpecKey]) -> list[Any]:
        return await self.database.many(
            SQL[name],
            lane=Lane.ENGINE,
            shard=shard,
            ids=[key.job for key in keys],
            revisions=[key.revision for key in keys],
        )


class _Texts(NamedTuple):
    """A definition as it is stored."""

    handler: str | None
    payload: bytes | None
    target: str | None
    options: str | None
    schedule: str | None


_kept: Kept[_Texts, RunSpec] = Kept(SPECS_BYTES_MAX)
_ad_hoc: Kept[tuple[str | None, str | None], RunSpec] = Kept(AD_HOC_BYTES_MAX)


def spec_of(row: asyncpg.Record) -> RunSpec:
    """A row of `read_specs` or `read_old_specs` as a definition."""
    if "definition" in row.keys():  # noqa: SIM118 -- a record is no mapping of its names
        return _from_definition(row)
    return _spec_of(
        row["handler"],
        row["payload"],
        row["target"],
        row["options"],
        # Of a schedule only this kind concerns a worker; without the others, jobs that do the same
        # at different times share one definition.
        row["schedule"] if "fixed_delay" in row["schedule"] else None,
    )


def ad_hoc_spec(handler: str | None, options: str | None) -> RunSpec:
    """What an ad-hoc run says about itself."""
    read = _loads(options)
    return spec_from_json(handler=handler, payload=None, target=read.get("target"), options=read)


def kept_ad_hoc_spec(handler: str | None, options: str | None) -> RunSpec:
    """It for whoever keeps no plans: most of a handler say the same, so it is read once."""
    found = _ad_hoc.get((handler, options))
    if found is not None:
        return found
    spec = ad_hoc_spec(handler, options)
    return _ad_hoc.put((handler, options), spec, weight_of(None, options, None))


def _spec_of(
    handler: str | None,
    payload: bytes | None,
    target: str | None,
    options: str | None,
    schedule: str | None,
) -> RunSpec:
    """Read the stored texts; the same ones are read once."""
    texts = _Texts(handler, payload, target, options, schedule)
    found = _kept.get(texts)
    if found is not None:
        return found
    spec = spec_from_json(
        handler=handler,
        payload=payload,
        target=_loads(target),
        options=_loads(options),
        fixed_delay=fixed_delay(_loads(schedule)),
    )
    return _kept.put(texts, spec, weight_of(target, options, payload))


def weight_of(target: str | None, options: str | None, payload: bytes | None) -> int:
    """About how many bytes a definition takes: its texts, what was read from them, its payload."""
    return SPEC_BYTES + 4 * (len(target or "") + len(options or "")) + len(payload or b"")


def _from_definition(row: asyncpg.Record) -> RunSpec:
    definition = _loads(row["definition"])
    return spec_from_json(
        handler=definition.get("handler"),
        payload=row["payload"],
        target=definition.get("target"),
        options=definition.get("options"),
        fixed_delay=fixed_delay(definition.get("schedule", {})),
    )


def fixed_delay(schedule: Mapping[str, Any]) -> timedelta | None:
    """The pause after the end of a run, of a schedule that counts from there."""
    if schedule.get("mode") != "fixed_delay":
        return None
    return timedelta(microseconds=read_duration(schedule["every"]).elapsed())


def _loads(text: str | None) -> Mapping[str, Any]:
    return json.loads(text) if text else {}
