"""How long the runs of one job are kept: said, shown, changed, taken back, and done."""

from api_kit import Client, Served
from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.janitor.prune import Pruner
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.prune import Pruning
from betimes.store.repair import Repairing
from betimes.store.retention import Retaining
from betimes.telemetry import Telemetry
from betimes.testing.postgres import SHARDS

JOB = {"name": "j", "schedule": "manual", "handler": "h", "retention": "PT1H"}


def pruner(database: Database, clock: Clock) -> Pruner:
    return Pruner(
        pruning=Pruning(database),
        repairing=Repairing(database),
        retaining=Retaining(database),
        shards=SHARDS,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(),
    )


async def test_a_retention_is_said_shown_changed_and_taken_back(admin: Client) -> None:
    made = await admin("POST", "/v1/jobs", JOB)
    assert (made.status, made.json["retention"]) == (201, "PT1H")
    changed = await admin("PATCH", "/v1/jobs/j", {"retention": "PT48H"})
    assert (changed.status, changed.json["retention"]) == (200, "PT48H")
    other = await admin("PATCH", "/v1/jobs/j", {"priority": 3})
    assert other.json["retention"] == "PT48H"
    without = await admin("PATCH", "/v1/jobs/j", {"retention": None})
    assert "retention" not in without.json
    assert "retention" not in (await admin("GET", "/v1/jobs/j")).json


async def test_a_retention_has_bounds(admin: Client) -> None:
    for said in ("PT59S", "P3661D"):
        refused = await admin("POST", "/v1/jobs", {**JOB, "retention": said})
        assert refused.status == 400, said
        assert refused.json["errors"][0]["pointer"] == "/retention"
        assert "expected a retention within" in refused.json["detail"]
    assert (await admin("POST", "/v1/jobs", {**JOB, "retention": "PT1M"})).status == 201


async def test_runs_are_gone_when_their_job_keeps_them_no_longer(
    served: Served, admin: Client
) -> None:
    await admin("POST", "/v1/jobs", JOB)
    run = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    lone = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    for one in (run, lone):
        assert (await admin("POST", f"/v1/runs/{one}/cancel")).status < 300
    keeper = pruner(served.desk.database, served.service.clock)
    await keeper.tick()
    assert (await admin("GET", f"/v1/runs/{run}")).status == 200, "for an hour"
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        # What was stored is made as short as nobody may ask for, instead of waiting.
        await connection.execute(
            "UPDATE betimes.jobs SET options = jsonb_set(options, '{retain_ms}', '1', false)"
        )
    await served.service.clock.sleep(0.05)
    await keeper.tick()
    assert (await admin("GET", f"/v1/runs/{run}")).status == 404
    assert (await admin("GET", f"/v1/runs/{lone}")).status == 200
