"""`betimes export` and `betimes import`: jobs to and from files, ours and those of others."""

import json
from pathlib import Path
from typing import Any

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.forms import yaml_text
from betimes.cli.invocation import say
from betimes.cli.lazy import LazyGroup, Place
from betimes.cli.progress import Progress
from betimes.cli.said import document_of
from betimes.cli.surface import OFFERS

FORMAT = "betimes/1"
AT_ONCE = 1000
OK, FAILED = 0, 1

SOURCES = {
    "apscheduler": Place("betimes.cli.takeover:apscheduler", "Jobs of APScheduler 3."),
    "celery": Place("betimes.cli.takeover:celery", "The beat schedule of a Celery application."),
    "crontab": Place("betimes.cli.takeover:crontab", "A crontab, a user's or the system's."),
    "eventbridge": Place("betimes.cli.sources:eventbridge", "Schedules of Amazon EventBridge."),
    "kubernetes": Place("betimes.cli.takeover:kubernetes", "Kubernetes CronJobs."),
    "rq": Place("betimes.cli.sources:rq", "What RQ and rq-scheduler repeat or hold back."),
    "betimes": Place("betimes.cli.exchange:betimes", "Our own format, as `export` writes it."),
}


def import_group_of() -> click.Group:
    """The group of importers."""
    return LazyGroup(name="import", help="Take over jobs from somewhere else.", places=SOURCES)


import_group = import_group_of()


@service_command("export", example="betimes export --tag team:billing > jobs.yaml")
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json", "crontab", "kubernetes", "ics"]),
    default="yaml",
    show_default=True,
    help="How it is written.",
)
@click.option("--group", metavar="NAME", help="Only of this group.")
@click.option("-l", "--tag", "tags", multiple=True, metavar="KEY:VALUE", help="Only with this tag.")
@click.option("--to", metavar="FILE", help="Write there instead of standard output.")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How far ahead an iCalendar file tells.",
)
def export(
    talk: Talk, *, form: str, group: str | None, tags: tuple[str, ...], to: str | None, days: int
) -> int:  # fmt: skip
    """Write jobs, and the calendars they name, so that `import` and `apply` read them.

    As a crontab or as CronJobs only what means the same there is written; the rest is told on
    standard error, with its reason, and the command fails. As iCalendar (ics), the fires ahead are
    written as the service will place them.
    """
    if form == "ics":
        from betimes.cli.ics import calendar_of  # noqa: PLC0415 -- few need it

        text, count, refused = calendar_of(talk, group, tags, days=days)
        summary = f"{count} jobs"
    else:
        told = read_all(talk, group, tags)
        text, refused = written(told, form)
        count = len(told["jobs"]) - len(refused)
        summary = f"{count} jobs, {len(told['calendars'])} calendars"
    if to is None:
        click.echo(text, nl=False)
    else:
        Path(to).write_text(text, encoding="utf-8", newline="")
    for name, reason in refused:
        say(f"{name} was left out: {reason}")
    talk.remark(summary)
    return FAILED if refused else OK


def written(told: dict[str, Any], form: str) -> tuple[str, list[tuple[str, str]]]:
    """An export in a form, and what could not be said in it."""
    if form == "json":
        return json.dumps(told, indent=2, ensure_ascii=False) + "\n", []
    if form == "yaml":
        return yaml_text(told), []
    from betimes.importers.writing import write_cron_jobs, write_crontab  # noqa: PLC0415 -- few need it

    if form == "crontab":
        done = write_crontab(told["jobs"])
        return "".join(f"{line}\n" for line in done.lines), done.refused
    done = write_cron_jobs(told["jobs"])
    return "---\n".join(yaml_text(document) for document in done.documents), done.refused


def read_all(talk: Talk, group: str | None, tags: tuple[str, ...]) -> dict[str, Any]:
    """Every page of an export as one."""
    query: dict[str, Any] = {"group": group, "tag": list(tags), "limit": AT_ONCE}
    whole: dict[str, Any] = {"format": FORMAT, "calendars": [], "jobs": []}
    seen: set[str] = set()
    progress = Progress("export", quiet=bool(talk.wishes.quiet))
    while True:
        page = talk.session.call(OFFERS["export.read"], query=query)
        fresh = [one for one in page["calendars"] if one["name"] not in seen]
        seen |= {one["name"] for one in fresh}
        whole["calendars"] += fresh
        whole["jobs"] += page["jobs"]
        progress.tell(len(whole["jobs"]), None)
        query["cursor"] = page.get("next_cursor")
        if query["cursor"] is None:
            progress.end()
            return {"format": FORMAT, "exported_at": page["exported_at"], **whole}


@service_command("betimes", example="betimes import betimes jobs.yaml --dry-run")
@click.argument("file")
@click.option("--dry-run", "trial", is_flag=True, help="Only tell what would happen.")
def betimes(talk: Talk, *, file: str, trial: bool) -> int:
    """Create the calendars and jobs of an export; what exists already is told and left alone."""
    document = document_of(file)
    if document.get("format") != FORMAT:
        raise click.BadParameter(f"expected `format: {FORMAT}` in {file}.")
    jobs = document.get("jobs") or []
    progress = Progress("import", quiet=bool(talk.wishes.quiet))
    created: list[str] = []
    skipped: list[dict[str, Any]] = []
    for start in range(0, max(1, len(jobs)), AT_ONCE):
        body = {
            "format": FORMAT,
            "calendars": document.get("calendars") or [],
            "jobs": jobs[start : start + AT_ONCE],
        }
        told = talk.session.call(OFFERS["import.betimes"], query={"dry_run": trial}, body=body)
        created += told["created"]
        skipped += [{**one, "place": one["place"] + start} for one in told["skipped"]]
        progress.tell(min(len(jobs), start + AT_ONCE), len(jobs))
    progress.end()
    if not talk.for_people:
        talk.show({"created": created, "skipped": skipped, "dry_run": trial})
        return OK
    for one in skipped:
        click.echo(f"skipped {jobs[one['place']].get('name', one['place'])}: {one['reason']}")
    would = " would be" if trial else ""
    click.echo(f"{len(created)}{would} created, {len(skipped)}{would} skipped")
    return OK
