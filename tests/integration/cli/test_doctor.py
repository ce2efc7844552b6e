"""The doctor, against a real service."""

import json
import re

import pytest

from cli_kit import acall
from store_kit import owner

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]
CREATE = ("job", "create", "--schedule", "0 9 * * mon-fri", "--handler", "report", "-q")


async def test_the_doctor_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    well = await acall("doctor", "-o", "json")
    verdicts = {one["check"]: one["verdict"] for one in json.loads(well.out)}
    assert verdicts["key"] == verdicts["clock"] == verdicts["ready"] == "ok"
    assert verdicts["service"] == "warn", "the service under test is of another release"
    monkeypatch.setenv("BETIMES_API_KEY", "btm_ak_wrong")
    ill = await acall("doctor")
    assert ill.code == 1
    assert "fail  key" in ill.out
    monkeypatch.setenv("BETIMES_URL", "http://127.0.0.1:9")
    away = await acall("doctor", "--timeout", "1")
    assert away.code == 1
    assert "fail  service" in away.out


async def test_the_doctor_tells_at_once_why_a_node_is_not_ready(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is tried again for a minute, and what the node says about itself is shown."""
    pauses: list[float] = []
    monkeypatch.setattr("betimes.sdk.ambient.pause", pauses.append)
    async with owner(dsn) as connection:
        last = "SELECT max(number) FROM betimes.migrations"
        await connection.execute(f"DELETE FROM betimes.migrations WHERE number = ({last})")
    ill = await acall("doctor")
    assert ill.code == 1
    said = r"^fail  ready +not ready \(.*migrations: .*lacks 1 migration"
    assert re.search(said, ill.out, re.MULTILINE)
    assert "betimes server migrate" in ill.out
    assert pauses == []


async def test_the_doctor_looks_at_the_records_of_a_database(dsn: str) -> None:
    await acall(*CREATE, "a")
    well = await acall("doctor", "--dsn", dsn, "-o", "json")
    told = {one["check"]: one for one in json.loads(well.out)}
    assert "records" in told, told
    assert told["records"]["verdict"] == "ok", told
    assert told["records"]["detail"] == "0 decisions and 0 runs in parcels were looked at"
    async with owner(dsn) as connection:
        for first, fires in ((2, 2), (1, 1)):
            await connection.execute(
                "INSERT INTO betimes.decisions (shard, job_id, fire_at, until_at, fires, tenant_id,"
                " decided_at, revision, code) SELECT shard, id, now() - $1 * interval '1 day',"
                " now() - interval '1 hour', $2, tenant_id, now(), 9, 'A' FROM betimes.jobs",
                first,
                fires,
            )
    ill = await acall("doctor", "--dsn", dsn)
    assert ill.code == 1
    assert "fail  records       two decisions are about the fire of " in ill.out
