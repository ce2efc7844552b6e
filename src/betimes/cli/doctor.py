"""`betimes doctor`: what is wrong between here and the service, with what to do about it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click

import betimes
from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.forms import Look
from betimes.cli.looks import GREEN, RED, YELLOW, clean, column
from betimes.cli.present import painted
from betimes.cli.surface import OFFERS
from betimes.cli.times import moment_of

SKEW_WARN, SKEW_BAD = 1.0, 30.0
EXPIRES_SOON_DAYS = 14
MARKS = {"ok": GREEN, "warn": YELLOW, "fail": RED, "skip": "2"}
READINESS = {"ready": "ok", "degraded": "warn"}
HINTS = {
    "database": "is PostgreSQL up, and reached from the node? its log tells more",
    "migrations": "betimes server migrate --dsn ADDRESS",
    "clock": "set the clock of that node (NTP)",
    "publishing": "does a coordinator run? `betimes cluster nodes` and `cluster shards` tell",
}
RECORDS_SHOWN = 20
LOOK = Look(tuple(map(column, ["CHECK=check", "VERDICT=verdict", "DETAIL=detail", "HINT=hint"])))


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    verdict: str
    detail: str
    hint: str = ""


@service_command("doctor", look=LOOK)
@click.option("--dsn", metavar="ADDRESS", help="Look at this database as well, and at its records.")
def doctor(talk: Talk, *, dsn: str | None) -> int:
    """Look at everything between here and the service: address, key, clocks, zones, database.

    With --dsn also at what the database holds of the last week: that every fire is a run or one
    decision, that ranges count right, and that what waits to be executed is there once and is
    published. It only reads, a bounded number of rows, and may be run while everything is at work.
    """
    talk.retry_for = 0.0  # what does not answer now is what is being looked for
    findings = []
    for finding in examined(talk, dsn):
        findings.append(finding)
        if talk.for_people:
            _tell(talk, finding)
    if not talk.for_people:
        talk.show([finding._asdict() for finding in findings])
    return 1 if any(finding.verdict == "fail" for finding in findings) else 0


def _tell(talk: Talk, finding: Finding) -> None:
    eye = talk.eye()
    mark = painted(f"{finding.verdict:4}", MARKS[finding.verdict], eye)
    click.echo(f"{mark}  {finding.check:12}  {clean(finding.detail)}")
    if finding.hint:
        click.echo(f"      {'':12}  {finding.hint}")


def examined(talk: Talk, dsn: str | None) -> Iterator[Finding]:
    """Every check in turn; without an answer the later ones are left out."""
    way = talk.way
    yield Finding("program", "ok", f"betimes {betimes.__version__}")
    yield Finding("address", "ok", f"{way.url} (from {way.url_from})")
    yield zones(talk)
    if dsn is not None:
        yield from database(dsn)
    reached = guarded("service", lambda: reach(talk))
    yield reached
    if reached.verdict == "fail":
        return
    yield guarded("ready", lambda: ready(talk))
    yield guarded("clock", lambda: clock(talk))
    if way.api_key is None:
        yield Finding("key", "fail", "there is none", "sign in: betimes login")
        return
    yield guarded("key", lambda: key(talk))
    yield guarded("nodes", lambda: nodes(talk))


def guarded(check: str, look: Callable[[], Finding]) -> Finding:
    """A check whose failure is a finding."""
    from betimes.cli.trouble import hint_of  # noqa: PLC0415 -- see Talk
    from betimes.sdk.errors import ApiError, ClientError  # noqa: PLC0415 -- see Talk

    try:
        return look()
    except ApiError as refused:
        return Finding(check, "fail", str(refused), hint_of(refused))
    except ClientError as lost:
        return Finding(check, "fail", str(lost), hint_of(lost))


def reach(talk: Talk) -> Finding:
    """Whether it answers, and which release it is."""
    talk.session.call(OFFERS["meta.health"])
    version = talk.session.call(OFFERS["meta.version"])["version"]
    if version != betimes.__version__:
        return Finding("service", "warn", f"answers; it is {version}, this is another release")
    return Finding("service", "ok", f"answers; it is {version}")


def ready(talk: Talk) -> Finding:
    """Whether requests are welcome."""
    told = talk.session.ask("GET", OFFERS["meta.ready"].path, refuse=False).json()
    said: dict[str, str] = told.get("checks", {})
    checks = ", ".join(f"{name}: {state}" for name, state in said.items())
    detail = f"{told['status']}{f' ({checks})' if checks else ''}"
    hint = next((HINTS[name] for name in said if said[name] != "ok" and name in HINTS), "")
    return Finding("ready", READINESS.get(told["status"], "fail"), detail, hint)


def clock(talk: Talk) -> Finding:
    """How far our clock is from the database's, half of the way there taken off."""
    began, before = machine.monotonic(), machine.now()
    told = moment_of(talk.session.call(OFFERS["meta.time"])["now"])
    took = machine.monotonic() - began
    if told is None:
        return Finding("clock", "skip", "the service tells no time")
    skew = abs((told - before).total_seconds() - took / 2)
    detail = f"{skew:.3f} s beside the database's"
    if skew > SKEW_BAD:
        return Finding("clock", "fail", detail, "set this machine's clock (NTP)")
    return Finding("clock", "warn" if skew > SKEW_WARN else "ok", detail)


def key(talk: Talk) -> Finding:
    """Whose key it is, what it may do, and until when."""
    told = talk.session.call(OFFERS["meta.whoami"])
    one = told["key"]
    detail = (
        f"{one['name']} ({one['kind']}) of tenant {told['tenant']['slug']}, "
        f"from {talk.way.key_from}; may {', '.join(one['scopes'])}"
    )
    expires = moment_of(one.get("expires_at"))
    if expires is not None and (expires - machine.now()).days < EXPIRES_SOON_DAYS:
        hint = f"it ends {expires:%Y-%m-%d}: betimes key rotate {one['id']}"
        return Finding("key", "warn", detail, hint)
    return Finding("key", "ok", detail)


def nodes(talk: Talk) -> Finding:
    """Whether the processes of the service agree about time and zones; for administrators."""
    from betimes.sdk.errors import ScopeMissing  # noqa: PLC0415 -- see Talk

    try:
        items: list[Any] = talk.session.call(OFFERS["cluster.nodes"])["items"]
    except ScopeMissing:
        return Finding("nodes", "skip", "only an administrator's key may see them")
    skewed = [one["name"] for one in items if abs(one["skew_ms"] or 0) > SKEW_WARN * 1000]
    releases = sorted({one["tzdata"] for one in items})
    if skewed:
        return Finding("nodes", "fail", f"clocks are off: {', '.join(skewed)}", "set them (NTP)")
    if len(releases) > 1:
        return Finding("nodes", "warn", f"zone data differs: {', '.join(releases)}")
    number = f"{len(items)} node{'' if len(items) == 1 else 's'}"
    return Finding("nodes", "ok", f"{number}, zone data {', '.join(releases) or '-'}")


def zones(talk: Talk) -> Finding:
    """How old the zone data here is."""
    from importlib.metadata import version  # noqa: PLC0415 -- only here

    release = version("tzdata")
    year = int(release.split(".", 1)[0])
    if year < talk.now.year - 1:
        hint = "pip install --upgrade tzdata"
        return Finding("zones", "warn", f"zone data {release} is years old", hint)
    return Finding("zones", "ok", f"zone data {release}")


def database(dsn: str) -> Iterator[Finding]:
    """Version, settings and migrations of a database, asked directly."""
    from betimes.app import run  # noqa: PLC0415 -- needed only when there is somebody to ask
    from betimes.config.load import load  # noqa: PLC0415 -- as above
    from betimes.config.sources import Flag  # noqa: PLC0415 -- as above

    complaints: list[str] = []

    async def work() -> int:
        settings = load(flags=[Flag("database.dsn", "--dsn", dsn)])
        complaints.extend(await run.database_complaints(settings))
        return 0

    run.run_to_end(work())
    for complaint in complaints:
        yield Finding("database", "fail", complaint)
    if not complaints:
        yield Finding("database", "ok", "version, settings and migrations are as they should be")
    yield from records(dsn)


def records(dsn: str) -> Iterator[Finding]:
    """Whether what a database holds can be true, in a sentence for each thing that cannot."""
    from betimes.app import run  # noqa: PLC0415 -- needed only when there is somebody to ask
    from betimes.config.load import load  # noqa: PLC0415 -- as above
    from betimes.config.sources import Flag  # noqa: PLC0415 -- as above
    from betimes.domain.errors import SchedulerError  # noqa: PLC0415 -- as above

    looks: list[Any] = []

    async def work() -> int:
        looks.append(await run.check_records(load(flags=[Flag("database.dsn", "--dsn", dsn)])))
        return 0

    try:
        run.run_to_end(work())
    except SchedulerError as error:
        yield Finding("records", "skip", f"could not be looked at: {error}")
        return
    (checked,) = looks
    for one in checked.found[:RECORDS_SHOWN]:
        yield Finding("records", "fail" if one.is_harmful else "warn", one.sentence)
    left = len(checked.found) - RECORDS_SHOWN
    if left > 0:
        yield Finding("records", "fail", f"and {left} more of the kind")
    extent = f"{checked.decisions} decisions and {checked.runs} runs in parcels were looked at"
    if checked.is_partial:
        extent += ", and there are more than are looked at at once"
    if not checked.found:
        yield Finding("records", "ok", extent)
        return
    hint = "a service that works right writes none of that: keep the logs of that time, report it"
    yield Finding("records", "warn", extent, hint)
