"""`betimes apply` and `betimes diff`: a directory of YAML as it is to be.

The jobs of a directory are a set. Each carries the tag `set`, by which the service knows what the
set owns: what lacks the tag is never touched, and only what has it is pruned.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.declared_workflows import changed_workflows, put_workflows, workflows_of
from betimes.cli.edit import EDITED
from betimes.cli.forms import yaml_text
from betimes.cli.looks import DIM, GREEN, RED, YELLOW
from betimes.cli.present import painted
from betimes.cli.surface import OFFERS
from betimes.domain.errors import Invalid
from betimes.importers.verdict import slug

TAG = "set"
SUFFIXES = (".yaml", ".yml", ".json")
FORMAT = "betimes/1"
PARTS = {"jobs", "calendars", "workflows"}
OK, DIFFERS = 0, 1
Command = Callable[..., Any]


@dataclass(slots=True)
class Declared:
    """What the files of a directory say, with the file of each job."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    calendars: list[dict[str, Any]] = field(default_factory=list)
    workflows: dict[str, dict[str, Any]] = field(default_factory=dict)


def _options(command: Command) -> Command:
    for option in (
        click.option("--adopt", is_flag=True, help="Take over jobs that no set owns."),
        click.option("--prune", is_flag=True, help="Delete jobs of the set that are not declared."),
        click.option("--set", "name", metavar="NAME",
                     help="Name of the set, instead of the directory's."),
        click.option("-f", "--file", "place", metavar="PATH", help="The same as PATH."),
        click.argument("path", required=False, type=click.Path()),
    ):  # fmt: skip
        command = option(command)
    return command


@service_command("apply", example="betimes apply jobs/ --prune")
@click.option("--dry-run", "trial", is_flag=True, help="Only tell what would happen.")
@_options
def apply(
    talk: Talk, *, path: str | None, place: str | None, name: str | None, prune: bool,
    adopt: bool, trial: bool,
) -> int:  # fmt: skip
    """Bring a file or directory of YAML about: create, change and, with --prune, delete.

    All of it happens, or nothing; workflows and calendars are brought first, one by one. Jobs that
    the set does not own are left alone.
    """
    where = _where(path, place)
    declared = read(where)
    body = _body(declared, name or set_name(where), prune=prune, adopt=adopt)
    if prune and not trial and not talk.wishes.yes:
        doomed = _ask(talk, {**body, "dry_run": True}, declared)["deleted"]
        if doomed:
            talk.confirm(f"This deletes {', '.join(doomed[:5])}{_more(doomed)}. Go on")
    if trial:
        workflows = changed_workflows(talk, declared.workflows)
    else:
        _put_calendars(talk, declared)
        workflows = put_workflows(talk, declared.workflows)
    told = {**_ask(talk, {**body, "dry_run": trial}, declared), "workflows": workflows}
    if talk.for_people:
        click.echo(summary(talk, told), nl=False)
    else:
        talk.show(told)
    return OK


@service_command("diff", example="betimes diff jobs/ --exit-code")
@click.option("--exit-code", is_flag=True, help="Fail (1) when there are differences.")
@_options
def diff(
    talk: Talk, *, path: str | None, place: str | None, name: str | None, prune: bool,
    adopt: bool, exit_code: bool,
) -> int:  # fmt: skip
    """Show what `apply` would change, member by member."""
    where = _where(path, place)
    declared = read(where)
    body = _body(declared, name or set_name(where), prune=prune, adopt=adopt)
    told = {
        **_ask(talk, {**body, "dry_run": True}, declared),
        "workflows": changed_workflows(talk, declared.workflows),
    }
    if talk.for_people:
        wanted = {_name(job): job for job in body["jobs"]}
        for line in differences(talk, told, wanted):
            click.echo(line)
        click.echo(summary(talk, told), nl=False)
    else:
        talk.show(told)
    changed = any(told[kind] for kind in ("created", "updated", "deleted", "workflows"))
    return DIFFERS if exit_code and changed else OK


def _where(path: str | None, place: str | None) -> Path:
    if (path is None) == (place is None):
        raise click.UsageError("say one PATH: a file or a directory of YAML.")
    return Path(path or place or "")


def set_name(where: Path) -> str:
    """The name of a set: its directory's, or its file's without the ending."""
    full = where.resolve()
    return slug(full.stem if full.is_file() else full.name)


def read(where: Path) -> Declared:
    """What every file declares, in the order of their names."""
    if where.is_dir():
        files = sorted(one for one in where.rglob("*") if one.suffix in SUFFIXES and one.is_file())
    elif where.is_file():
        files = [where]
    else:
        raise Invalid(f"expected a file or a directory, got {str(where)!r}")
    declared = Declared()
    for file in files:
        for document in documents(file):
            _take(document, file, declared)
    return declared


def documents(file: Path) -> Iterator[Any]:
    """Every document of a YAML or JSON file."""
    import yaml  # noqa: PLC0415 -- only here

    try:
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if document is not None:
                yield document
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise Invalid(f"expected YAML in {file}, got {fault}") from fault


def _take(document: Any, file: Path, declared: Declared) -> None:
    """One document: a job, a list of jobs, or an object with jobs, calendars and workflows."""
    jobs: list[Any]
    calendars: list[Any]
    if isinstance(document, list):
        jobs, calendars = document, []
    elif isinstance(document, dict) and PARTS & document.keys():
        if document.get("format", FORMAT) != FORMAT:
            raise Invalid(f"expected the format {FORMAT} in {file}, got {document['format']!r}")
        jobs, calendars = document.get("jobs") or [], document.get("calendars") or []
        for name, workflow in workflows_of(document.get("workflows") or {}, file).items():
            if name in declared.workflows:
                raise Invalid(f"the workflow {name!r} is declared twice, also in {file}")
            declared.workflows[name] = workflow
    else:
        jobs, calendars = [document], []
    for job in jobs:
        if not isinstance(job, dict):
            raise Invalid(f"expected a job as an object in {file}, got {type(job).__name__}")
        declared.jobs.append({str(key): value for key, value in job.items()})
        declared.files.append(str(file))
    declared.calendars += calendars


def _body(declared: Declared, name: str, *, prune: bool, adopt: bool) -> dict[str, Any]:
    tags = {TAG: name}
    jobs = [{**job, "tags": {**(job.get("tags") or {}), **tags}} for job in declared.jobs]
    return {"jobs": jobs, "selector": {"tags": tags}, "prune": prune, "adopt": adopt}


def _ask(talk: Talk, body: dict[str, Any], declared: Declared) -> Any:
    """Ask the service; what it refuses is said with the file it stands in."""
    from betimes.sdk.errors import ApiError  # noqa: PLC0415 -- see Talk

    try:
        return talk.session.call(OFFERS["jobs.apply"], body=body)
    except ApiError as refused:
        for error in refused.problem.errors:
            parts = error.pointer.split("/")
            if len(parts) > 2 and parts[1] == "jobs" and parts[2].isdecimal():  # noqa: PLR2004 -- /jobs/0
                place = int(parts[2])
                talk.remark(f"{declared.files[place]}: {_name(declared.jobs[place])}:")
        raise


def _put_calendars(talk: Talk, declared: Declared) -> None:
    for calendar in declared.calendars:
        body = {key: value for key, value in calendar.items() if key != "name"}
        path = {"calendar": str(calendar["name"])}
        talk.session.call(OFFERS["calendars.put"], path, query={"force": True}, body=body)


def _name(job: Mapping[str, Any]) -> str:
    name, group = str(job.get("name", "-")), job.get("group", "default")
    return name if group == "default" else f"{group}~{name}"


def _more(names: list[str]) -> str:
    return f" and {len(names) - 5} more" if len(names) > 5 else ""  # noqa: PLR2004 -- as many as are named


def summary(talk: Talk, told: Mapping[str, Any]) -> str:
    """What was done, or would be."""
    eye = talk.eye()
    lines = [painted(f"+ {name}", GREEN, eye) for name in told["created"]]
    lines += [
        painted(f"~ {one['name']}", YELLOW, eye) + f"  ({', '.join(one['members'])})"
        for one in told["diff"]
    ]
    lines += [painted(f"- {name}", RED, eye) for name in told["deleted"]]
    lines += [painted(f"~ workflow {name}", YELLOW, eye) for name in told.get("workflows", ())]
    would = "would be " if told["dry_run"] else ""
    lines.append(
        f"{len(told['created'])} {would}created, {len(told['updated'])} {would}changed, "
        f"{len(told['deleted'])} {would}deleted, {len(told['unchanged'])} as they were"
    )
    return "\n".join(lines) + "\n"


def differences(
    talk: Talk, told: Mapping[str, Any], wanted: Mapping[str, dict[str, Any]]
) -> Iterator[str]:
    """The changed members as lines with - and +."""
    eye = talk.eye()
    for one in told["diff"]:
        now = talk.session.call(OFFERS["jobs.get"], {"job": one["id"]}, query={"view": "full"})
        before = {name: now[name] for name in EDITED if now.get(name) is not None}
        asked = wanted.get(one["name"], {})
        names = [name for name in EDITED if name in before or name in asked]
        shown = [name for name in names if name in one["members"] or name in asked]
        old = yaml_text({name: before[name] for name in shown if name in before})
        new = yaml_text({name: asked[name] for name in shown if name in asked})
        yield painted(f"~ {one['name']}", YELLOW, eye)
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1):
            if not line.startswith(("---", "+++")):
                paint = {"+": GREEN, "-": RED}.get(line[:1], DIM)
                yield painted(f"    {line}", paint, eye)
