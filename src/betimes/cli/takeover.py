"""`betimes import crontab|kubernetes|celery|apscheduler`: take over what others run.

Reading happens here, judging in `betimes.importers`; the jobs then travel as a declared set, so a
second import changes what has changed and doubles nothing.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.documents import documents_in
from betimes.cli.forms import Look
from betimes.cli.looks import GREEN, RED, YELLOW, column
from betimes.cli.present import painted
from betimes.cli.progress import Progress
from betimes.cli.said import content_of
from betimes.cli.surface import OFFERS
from betimes.cli.times import exact
from betimes.domain.errors import Invalid
from betimes.importers.shadow import Comparison, compare
from betimes.importers.verdict import IMPORTED, REFUSED, Verdict, inside, slug

TAG = "set"
SUSPENDED = "suspended where it came from"
AT_ONCE = 1000
YEAR = timedelta(days=366)
SHOWN_DIFFERENCES = 3
OK, FAILED = 0, 1
COLUMNS = "PLACE=place VERDICT=verdict NAME=name SCHEDULE=schedule NOTES=notes"
LOOK = Look(tuple(map(column, COLUMNS.split())))
Command = Callable[..., Any]


def takeover_options(command: Command) -> Command:
    """The options that every source has."""
    for option in (
        click.option("--queue", "-Q", metavar="NAME", help="Queue of the jobs."),
        click.option("--set", "set_name", metavar="NAME",
                     help="Name of the set the jobs belong to, instead of the source's."),
        click.option("--adopt", is_flag=True, help="Take over jobs that no set owns."),
        click.option("--prune", is_flag=True,
                     help="Delete jobs of an earlier import that the source has no more."),
        click.option("--strict", is_flag=True, help="Import nothing when anything is refused."),
        click.option("--shadow", is_flag=True,
                     help="Compare fires with the source's own rules for a year ahead."),
        click.option("--dry-run", "trial", is_flag=True, help="Only tell what would happen."),
    ):  # fmt: skip
        command = option(command)
    return command


@service_command(
    "crontab", look=LOOK, example="betimes import crontab old.crontab --tz Europe/Oslo --dry-run"
)
@click.argument("file")
@click.option(
    "--system/--user",
    "system",
    default=None,
    help="Whether there is a column with the user; /etc/crontab and cron.d have one.",
)
@click.option("--as-user", metavar="NAME", help="Whose crontab it is.")
@click.option(
    "--flavour",
    type=click.Choice(["debian", "cronie"]),
    help="Whose cron it was, where that matters (CRON_TZ).",
)
@click.option("--handler", default="shell", show_default=True, help="Handler that runs commands.")
@takeover_options
def crontab(
    talk: Talk, *, file: str, system: bool | None, as_user: str | None, flavour: str | None,
    handler: str, queue: str | None, **manner: Any,
) -> int:  # fmt: skip
    """Take over a crontab; - reads standard input, as in `crontab -l | betimes import crontab -`.

    Every line becomes a job that fires when it fired before, or is refused with a reason. The jobs
    call a handler with {command, stdin, env, user}.
    """
    from betimes.importers.crontab import Where, read_crontab  # noqa: PLC0415 -- one of many

    text = content_of(file if file == "-" else f"@{file}")
    if system is None:
        system = file == "/etc/crontab" or "/cron.d/" in str(Path(file).absolute())
    where = Where(
        timezone=zone_said(talk), system=system, user=as_user, flavour=flavour, handler=handler,
        queue=queue, prefix=slug(Path(file).name) if file != "-" else "cron",
    )  # fmt: skip
    return take_over(talk, read_crontab(text, where), f"crontab-{where.prefix}", **manner)


@service_command("kubernetes", look=LOOK, example="betimes import kubernetes manifests/ --dry-run")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--handler", default="container", show_default=True, help="Handler that runs containers."
)
@takeover_options
def kubernetes(
    talk: Talk, *, files: tuple[str, ...], handler: str, queue: str | None, **manner: Any
) -> int:  # fmt: skip
    """Take over Kubernetes CronJobs from files or directories of YAML, or - for standard input.

    `kubectl get cronjobs -A -o yaml | betimes import kubernetes -` takes a whole cluster's.

    The jobs call a handler with {image, command, args, env}. What is suspended there is paused
    here.
    """
    from betimes.importers.kubernetes import Where, read_manifests  # noqa: PLC0415 -- one of many

    where = Where(timezone=zone_said(talk), handler=handler, queue=queue)
    verdicts: list[Verdict] = []
    for name, documents in documents_in(files):
        found = documents if isinstance(documents, str) else read_manifests(documents, where)
        if isinstance(found, str):
            verdicts.append(Verdict(place=name, source="", reason=found))
        else:
            verdicts += [inside(name, one) for one in found]
    return take_over(talk, verdicts, "kubernetes", **manner)


@service_command(
    "celery", look=LOOK, example="betimes import celery proj.app:app --shadow --dry-run"
)
@click.argument("target", metavar="MODULE:APP")
@takeover_options
def celery(talk: Talk, *, target: str, queue: str | None, **manner: Any) -> int:
    """Take over the beat schedule of a Celery application, read in your own environment.

    MODULE:APP is the application, or a dict with entries. Importing it runs its code.
    """
    from betimes.importers.beat import Where, read_beat  # noqa: PLC0415 -- one of many

    found = loaded(target)
    zone = zone_said(talk) or "UTC"
    entries = found
    if not isinstance(found, dict):
        found.finalize()
        entries = found.conf.beat_schedule
        zone = str(found.timezone)
    return take_over(
        talk, read_beat(entries, Where(timezone=zone, queue=queue)), f"celery-{slug(target)}",
        **manner,
    )  # fmt: skip


@service_command(
    "apscheduler", look=LOOK, example="betimes import apscheduler proj.jobs:scheduler --dry-run"
)
@click.argument("target", metavar="MODULE:SCHEDULER|URL")
@takeover_options
def apscheduler(talk: Talk, *, target: str, queue: str | None, **manner: Any) -> int:
    """Take over the jobs of an APScheduler 3 scheduler or job store, in your own environment.

    A URL such as sqlite:///jobs.sqlite is a store of SQLAlchemyJobStore. Reading a store unpickles
    what is in it, which runs code: do it where you trust it.
    """
    from betimes.importers.apscheduler import Where, jobs_of, read_jobs  # noqa: PLC0415 -- one of many

    found = _store(target) if "://" in target else loaded(target)
    jobs = jobs_of(found)
    return take_over(
        talk, read_jobs(jobs, Where(queue=queue)), f"apscheduler-{slug(target)}", **manner
    )


def _store(url: str) -> Any:
    try:
        from apscheduler.jobstores.sqlalchemy import (  # noqa: PLC0415 -- the user's own
            SQLAlchemyJobStore,
        )
        from apscheduler.schedulers.background import (  # noqa: PLC0415 -- the user's own
            BackgroundScheduler,
        )
    except ImportError as missing:
        raise Invalid(f"expected APScheduler 3 and SQLAlchemy here, got: {missing}") from missing
    store = SQLAlchemyJobStore(url=url)
    store.start(BackgroundScheduler(), "default")
    return store


def loaded(target: str) -> Any:
    """What `module:name` leads to, found from the working directory as well."""
    module, colon, name = target.partition(":")
    if not colon or not name:
        raise click.UsageError(f"expected MODULE:NAME, got {target!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as fault:
        raise Invalid(f"expected to find {target}, got {fault}") from fault
    finally:
        sys.path.pop(0)
    return found


def zone_said(talk: Talk) -> str | None:
    """The zone that the line names."""
    return "UTC" if talk.wishes.utc else talk.wishes.tz


def take_over(
    talk: Talk, verdicts: Sequence[Verdict], default_set: str, *, set_name: str | None,
    adopt: bool, prune: bool, strict: bool, shadow: bool, trial: bool,
) -> int:  # fmt: skip
    """Tell every verdict, compare if wished, and bring the jobs about."""
    compared = shadows(talk, verdicts) if shadow else {}
    rows = [row_of(verdict, compared.get(id(verdict))) for verdict in verdicts]
    if talk.for_people:
        for verdict in verdicts:
            _tell(talk, verdict, compared.get(id(verdict)))
    refused = [verdict for verdict in verdicts if verdict.kind == REFUSED]
    jobs = [verdict for verdict in verdicts if verdict.kind == IMPORTED]
    stopped = strict and bool(refused)
    told: dict[str, Any] | None = None
    if jobs and not stopped:
        told = _asked(talk, jobs, set_name or default_set, adopt=adopt, prune=prune, trial=trial)
    if not talk.for_people:
        talk.show(rows)
    _sum(talk, verdicts, told, trial=trial, stopped=stopped)
    return FAILED if stopped else OK


def _asked(
    talk: Talk, jobs: Sequence[Verdict], name: str, *, adopt: bool, prune: bool, trial: bool
) -> dict[str, Any] | None:
    """Bring the jobs about; a trial goes on without a service to ask."""
    from betimes.sdk.errors import ClientError, MissingCredentials, Unreachable  # noqa: PLC0415

    try:
        return bring_about(talk, jobs, name, adopt=adopt, prune=prune, trial=trial)
    except ClientError as lost:
        if not trial or not isinstance(lost, Unreachable | MissingCredentials):
            raise
        talk.remark(f"the service was not asked: {lost}")
        return None


def row_of(verdict: Verdict, comparison: Comparison | None) -> dict[str, Any]:
    """A verdict as programs read it."""
    row: dict[str, Any] = {
        "place": verdict.place,
        "verdict": verdict.kind,
        "source": verdict.source,
        "name": None if verdict.job is None else verdict.job["name"],
        "schedule": None if verdict.job is None else verdict.job["schedule"],
        "paused": verdict.paused,
        "reason": verdict.reason,
        "warnings": list(verdict.warnings),
        "notes": [verdict.reason, *verdict.warnings] if verdict.reason else list(verdict.warnings),
        "job": None if verdict.job is None else dict(verdict.job),
    }
    if comparison is not None:
        row["shadow"] = {
            "agrees": comparison.agrees,
            "until": comparison.until.isoformat(),
            "ours": comparison.ours,
            "theirs": comparison.theirs,
            **{
                kind: [one.isoformat() for one in getattr(comparison, kind)[:100]]
                for kind in ("missing", "extra", "doubled")
            },
        }
    return row


def _tell(talk: Talk, verdict: Verdict, comparison: Comparison | None) -> None:
    eye = talk.eye()
    paints = {IMPORTED: GREEN, REFUSED: RED}
    mark = painted(f"{verdict.kind:8}", paints.get(verdict.kind, "2"), eye)
    about = verdict.job["name"] if verdict.job is not None else verdict.source.strip()
    click.echo(f"{mark}  {verdict.place}: {about}{'  (paused)' if verdict.paused else ''}")
    if verdict.reason:
        click.echo(f"          {verdict.reason}")
    for warning in verdict.warnings:
        click.echo(f"          {painted('!', YELLOW, eye)} {warning}")
    if comparison is not None:
        for line in shadow_lines(talk, comparison):
            click.echo(f"          {line}")


def shadow_lines(talk: Talk, comparison: Comparison) -> Iterator[str]:
    """What a comparison found."""
    until = f"until {comparison.until:%Y-%m-%d}"
    if comparison.agrees:
        yield f"shadow: {comparison.ours:,} fires {until}, all the same"
        return
    yield f"shadow: {comparison.ours:,} fires here, {comparison.theirs:,} there {until}"
    for kind, says in (
        ("missing", "only there"), ("extra", "only here"), ("doubled", "more than once there"),
    ):  # fmt: skip
        found: tuple[datetime, ...] = getattr(comparison, kind)
        if found:
            times = ", ".join(exact(one, talk.zone) for one in found[:SHOWN_DIFFERENCES])
            more = (
                f" and {len(found) - SHOWN_DIFFERENCES} more"
                if len(found) > SHOWN_DIFFERENCES
                else ""
            )
            yield f"  {says}: {times}{more}"


def shadows(talk: Talk, verdicts: Sequence[Verdict]) -> dict[int, Comparison]:
    """A comparison for each verdict that can be compared, from the next minute for a year."""
    after = machine.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    progress = Progress("shadow", quiet=bool(talk.wishes.quiet))
    found = {}
    for number, verdict in enumerate(verdicts, 1):
        comparison = compare(verdict, after, after + YEAR)
        if comparison is not None:
            found[id(verdict)] = comparison
        progress.tell(number, len(verdicts))
    progress.end()
    return found


def bring_about(
    talk: Talk, verdicts: Sequence[Verdict], name: str, *, adopt: bool, prune: bool, trial: bool
) -> dict[str, Any]:
    """Apply the jobs as a declared set; what the source had suspended begins paused."""
    tags = {TAG: name}
    jobs = [declared(one, tags) for one in verdicts if one.job]
    if prune and len(jobs) > AT_ONCE:
        raise Invalid(f"expected at most {AT_ONCE} jobs with --prune, got {len(jobs)}")
    whole: dict[str, Any] = {"created": [], "updated": [], "unchanged": [], "deleted": []}
    progress = Progress("import", quiet=bool(talk.wishes.quiet))
    for start in range(0, len(jobs), AT_ONCE):
        body = {
            "jobs": jobs[start : start + AT_ONCE], "selector": {"tags": tags}, "prune": prune,
            "adopt": adopt, "dry_run": trial,
        }  # fmt: skip
        if prune and not trial and not talk.wishes.yes:
            doomed = talk.session.call(OFFERS["jobs.apply"], body={**body, "dry_run": True})
            if doomed["deleted"]:
                talk.confirm(f"This deletes {', '.join(doomed['deleted'][:5])}. Go on")
        told = talk.session.call(OFFERS["jobs.apply"], body=body)
        for kind in whole:
            whole[kind] += told[kind]
        progress.tell(min(start + AT_ONCE, len(jobs)), len(jobs))
    progress.end()
    made = set(whole["created"])
    for verdict in verdicts:
        if verdict.paused and verdict.job is not None and not trial:
            name = _name(verdict.job)
            if name not in made:  # it was there, and has been suspended since
                talk.session.call(OFFERS["jobs.pause"], {"job": name}, body={"reason": SUSPENDED})
    return whole


def declared(verdict: Verdict, tags: dict[str, str]) -> dict[str, Any]:
    """The job of a verdict as a member of a set."""
    job = dict(verdict.job or {})
    job["tags"] = {**job.get("tags", {}), **tags}
    if verdict.paused:
        job |= {"paused": True, "pause_reason": SUSPENDED}
    return job


def _name(job: Any) -> str:
    group = job.get("group", "default")
    return str(job["name"] if group == "default" else f"{group}~{job['name']}")


def _sum(
    talk: Talk, verdicts: Sequence[Verdict], told: dict[str, Any] | None, *, trial: bool,
    stopped: bool,
) -> None:  # fmt: skip
    kinds = [verdict.kind for verdict in verdicts]
    line = f"{kinds.count(IMPORTED)} read, {kinds.count(REFUSED)} refused"
    if stopped:
        line += "; nothing was imported (--strict)"
    elif told is not None:
        would = "would be " if trial else ""
        line += (
            f"; {len(told['created'])} {would}created, {len(told['updated'])} {would}changed, "
            f"{len(told['deleted'])} {would}deleted, {len(told['unchanged'])} as they were"
        )
    talk.remark(line)
