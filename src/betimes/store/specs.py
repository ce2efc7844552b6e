"""What to do for runs of jobs: definitions by job and revision."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from betimes.domain.ids import JobId, ShardId
from betimes.domain.spec import RunSpec, spec_from_json
from betimes.schedule.duration import read_duration
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("runs")


class SpecKey(NamedTuple):
    """A definition that never changes."""

    job: JobId
    revision: int


@dataclass(frozen=True, slots=True)
class Specs:
    """Definitions as they were when their runs were planned."""

    database: Database

    async def read(self, shard: ShardId, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
        """Current definitions first, then those that were replaced; what is in neither is gone."""
        keys = list(wanted)
        found = {
            SpecKey(row["id"], row["revision"]): spec_from_json(
                handler=row["handler"],
                payload=row["payload"],
                target=_loads(row["target"]),
                options=_loads(row["options"]),
                fixed_delay=fixed_delay(_loads(row["schedule"])),
            )
            for row in await self._rows("read_specs", shard, keys)
        }
        missing = [key for key in keys if key not in found]
        if missing:
            for row in await self._rows("read_old_specs", shard, missing):
                found[SpecKey(row["id"], row["revision"])] = _from_definition(row)
        return found

    async def _rows(self, name: str, shard: ShardId, keys: list[SpecKey]) -> list[Any]:
        return await self.database.many(
            SQL[name],
            lane=Lane.ENGINE,
            shard=shard,
            ids=[key.job for key in keys],
            revisions=[key.revision for key in keys],
        )


def _from_definition(row: Mapping[str, Any]) -> RunSpec:
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
