"""`betimes job edit`: a few members by flags, or the whole definition in an editor."""

from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import ServiceCommand, Talk
from betimes.cli.completing import NameOf
from betimes.cli.forms import yaml_text
from betimes.cli.parts import parts_of, schedule_options, with_parts
from betimes.cli.perform import quoted
from betimes.cli.said import body_of, option_of
from betimes.cli.surface import OFFERS

NEW, READ, UPDATE = OFFERS["jobs.create"], OFFERS["jobs.get"], OFFERS["jobs.update"]
FIXED = frozenset({"name", "group", "paused", "pause_reason"})
MEMBERS = tuple(one for one in NEW.body or () if one.place not in FIXED)
EDITED = (
    *(
        "description",
        "schedule",
        "handler",
        "target",
        "payload",
        "payload_ref",
        "payload_schema",
        "queue",
    ),
    *("priority", "concurrency", "fairness_key", "retry", "timeout", "start_deadline", "tags"),
    *("metadata", "retention", "action_after_completion"),
)
HEAD = "# Change what is to be different, save and leave. An empty file changes nothing.\n"
SAYS = """Change a job: by flags, or in your editor when none is given.

--unset takes a member away. What somebody else changed in the meantime is not overwritten.
"""


@click.pass_context
def called(context: click.Context, /, **given: Any) -> int:
    """Patch the job."""
    talk = Talk(context)
    job = given["job"]
    patch = body_of(MEMBERS, given, now=talk.now, zone=talk.zone)
    for name in given["unset"]:
        patch[name.replace("-", "_")] = None
    etag = given["if_match"]
    parts = parts_of(given)
    if talk.wishes.tz and "schedule" in patch:
        parts = {"timezone": talk.wishes.tz, **parts}
    if parts:
        made = with_parts(patch.get("schedule"), parts)
        # A patch is laid over what is there: of another schedule nothing may stay behind.
        old = talk.session.call(READ, {"job": job})["schedule"] if "schedule" in patch else {}
        patch["schedule"] = {name: None for name in old if name not in made} | made
    if not patch:
        patch, etag = _in_editor(talk, job)
    if not patch:
        talk.remark("nothing was changed")
        return 0
    query: dict[str, Any] = {"validate_only": True} if given["trial"] else {}
    if given["pending"]:
        query["apply_to"] = "pending"
    headers = {"if-match": quoted(etag)} if etag else {}
    told = talk.session.call(UPDATE, {"job": job}, query=query, body=patch, headers=headers)
    talk.done(f"job/{job} {'could be changed' if given['trial'] else 'changed'}", told)
    return 0


def _in_editor(talk: Talk, job: str) -> tuple[dict[str, Any], str]:
    if not machine.somebody_types():
        raise click.UsageError("say what to change by flags; there is nobody to edit it.")
    import yaml  # noqa: PLC0415 -- only who edits pays for it

    told = talk.session.call(READ, {"job": job}, query={"view": "full"})
    before = {name: told[name] for name in EDITED if told.get(name) is not None}
    text = click.edit(HEAD + yaml_text(before), extension=".yaml")
    after = yaml.safe_load(text) if text else None
    if not isinstance(after, dict):
        return {}, told["etag"]
    return difference(before, after), told["etag"]


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes one of the other."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if old == value:
            continue
        both = isinstance(old, dict) and isinstance(value, dict)
        patch[name] = difference(old, value) if both else value  # type: ignore[arg-type]
    return patch


edit = ServiceCommand(
    "edit",
    callback=called,
    help=SAYS,
    example="betimes job edit nightly-report --dst-gap next",
    params=[
        click.Argument(["job"], type=NameOf("job")),
        *(option_of(one) for one in MEMBERS),
        *schedule_options(),
        click.Option(["--unset"], multiple=True, metavar="MEMBER", help="Take a member away."),
        click.Option(["--pending"], is_flag=True,
                     help="Runs that wait already are done as the job is then."),
        click.Option(["--if-match"], metavar="ETAG", help="Only if nobody has changed it."),
        click.Option(["--dry-run", "trial"], is_flag=True, help="Check it, change nothing."),
    ],
)  # fmt: skip
