"""What was seen of one seed: by clients, by tasks, by the database itself, and at the end."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from simulation.plan import Plan
from simulation.server import Server


@dataclass(eq=False)
class Executed:
    """A task has begun; its own evidence."""

    at: datetime
    host: str
    run: UUID
    fence: int
    attempt: int
    job: UUID | None
    fire: datetime | None
    due: datetime
    ended: datetime | None = None


@dataclass(eq=False)
class Asked:
    """What a client wanted, when, and whether it was told that it is so."""

    verb: str
    began: datetime
    job: UUID | None = None
    key: str = ""
    detail: str = ""
    ended: datetime | None = None
    ok: bool = False
    refused: str = ""
    answer: Any = None
    due: datetime | None = None


@dataclass(frozen=True)
class Trouble:
    """A role fell over."""

    at: datetime
    host: str
    causes: list[str]


@dataclass(frozen=True)
class Change:
    """One line of what the database noted about itself."""

    n: int
    at: datetime
    kind: str
    shard: int
    id: UUID | None
    fact: dict[str, Any]


@dataclass(eq=False)
class History:
    """Everything a judge may look at."""

    plan: Plan
    began: datetime
    healed: datetime | None = None
    ended: datetime | None = None
    executed: list[Executed] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    steps: list[tuple[datetime, float]] = field(default_factory=list)
    probed: tuple[datetime, dict[int, int]] | None = None
    unpublished: int = 0
    changes: list[Change] = field(default_factory=list)
    runs: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    letters: set[UUID] = field(default_factory=set)
    parcels: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[dict[str, Any]] = field(default_factory=list)
    met: dict[str, int] = field(default_factory=dict)
    transactions: int = 0
    digest: str = ""

    def read(self, server: Server) -> None:
        """The last word: the tables as they are at the end."""
        self.changes = [
            Change(
                row["n"], row["at"], row["kind"], row["shard"], row["id"], json.loads(row["fact"])
            )
            for row in server.read("SELECT * FROM sim.history ORDER BY n")
        ]
        self.runs = {
            row["id"]: dict(row) for row in server.read("SELECT * FROM betimes.runs ORDER BY id")
        }
        self.jobs = {row["id"]: dict(row) for row in server.read("SELECT * FROM betimes.jobs")}
        found = server.read("SELECT * FROM betimes.decisions ORDER BY job_id, fire_at, code")
        self.decisions = [dict(row) for row in found]
        self.letters = {row["run_id"] for row in server.read("SELECT * FROM betimes.dead_letters")}
        self.parcels = [dict(row) for row in server.read("SELECT * FROM betimes.parcels")]
        self.gaps = [dict(row) for row in server.read("SELECT * FROM betimes.gaps")]
