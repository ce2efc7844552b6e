"""`betimes crontab`: the service's jobs as one's crontab, as crontab(1) has it."""

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.exchange import read_all, written
from betimes.cli.invocation import say
from betimes.cli.said import content_of
from betimes.cli.surface import OFFERS
from betimes.cli.takeover import TAG, take_over
from betimes.domain.errors import Invalid
from betimes.importers.crontab import Where, read_crontab

HEAD = "# Jobs of the set {name}; each line is one. Save and leave to change them.\n"
OK = 0


@service_command("crontab", example="betimes crontab -l --set web-1")
@click.argument("file", required=False)
@click.option("-l", "listing", is_flag=True, help="Print the crontab.")
@click.option("-e", "editing", is_flag=True, help="Change it in your editor.")
@click.option("-r", "removing", is_flag=True, help="Delete all of its jobs.")
@click.option(
    "--set",
    "name",
    default="crontab",
    show_default=True,
    metavar="NAME",
    help="Which crontab: the set its jobs belong to.",
)
@click.option("--handler", default="shell", show_default=True, help="Handler that runs commands.")
@click.option("-Q", "--queue", metavar="NAME", help="Queue of the jobs.")
def crontab(
    talk: Talk, *, file: str | None, listing: bool, editing: bool, removing: bool, name: str,
    handler: str, queue: str | None,
) -> int:  # fmt: skip
    """Keep a crontab in the service: print, change or delete it, or put FILE (- is standard input).

    Like crontab(1), all of it is replaced: lines that are gone are deleted. A line that cannot be
    read changes nothing at all.
    """
    if [listing, editing, removing, file is not None].count(True) != 1:
        raise click.UsageError("say one of -l, -e, -r or FILE.")
    if listing:
        click.echo(_text(talk, name), nl=False)
        return OK
    if removing:
        return _remove(talk, name)
    text = _edited(talk, name) if editing else content_of(_source(file or "-"))
    if text is None:
        talk.remark("nothing was changed")
        return OK
    return _put(talk, text, name, Where(timezone=talk.wishes.tz or "UTC", handler=handler,
                                        queue=queue, flavour="cronie", prefix=name))  # fmt: skip


def _source(file: str) -> str:
    return file if file == "-" else f"@{file}"


def _text(talk: Talk, name: str) -> str:
    """The crontab; what is in the set and cannot be a line would be lost by replacing it."""
    told = read_all(talk, None, (f"{TAG}:{name}",))
    text, refused = written(told, "crontab")
    if refused:
        names = ", ".join(one for one, _ in refused)
        raise Invalid(f"the set {name} holds jobs that are no lines of a crontab: {names}")
    return text


def _edited(talk: Talk, name: str) -> str | None:
    if not machine.somebody_types():
        raise click.UsageError("there is nobody to edit it; put a FILE instead.")
    return click.edit(HEAD.format(name=name) + _text(talk, name), extension=".crontab")


def _put(talk: Talk, text: str, name: str, where: Where) -> int:
    verdicts = read_crontab(text, where)
    if not any(one.job for one in verdicts) and not any(one.reason for one in verdicts):
        return _remove(talk, name)
    talk.wishes.yes = True  # to replace a crontab is to delete what is gone from it
    return take_over(
        talk, verdicts, name, set_name=name, adopt=False, prune=True, strict=True, shadow=False,
        trial=False,
    )  # fmt: skip


def _remove(talk: Talk, name: str) -> int:
    body = {"jobs": [], "selector": {"tags": {TAG: name}}, "prune": True}
    doomed = talk.session.call(OFFERS["jobs.apply"], body={**body, "dry_run": True})["deleted"]
    if doomed:
        talk.confirm(f"This deletes all {len(doomed)} jobs of the crontab {name}. Go on")
        talk.session.call(OFFERS["jobs.apply"], body=body)
    say(f"{len(doomed)} jobs were deleted")
    return OK
