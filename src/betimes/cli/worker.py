"""`betimes worker run`: do the work of an app."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from betimes.cli.invocation import invocation_of, say, settings_options
from betimes.config.duration import read_duration
from betimes.domain.errors import BadSetting

CONCURRENCY_MAX = 1_000


@click.group()
def worker() -> None:
    """Do the work of an app."""


@worker.command()
@click.argument("place", metavar="MODULE:APP")
@click.option(
    "-q",
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Queue to serve; may be said again.",
)
@click.option(
    "-c",
    "--concurrency",
    default=10,
    show_default=True,
    type=click.IntRange(1, CONCURRENCY_MAX),
    help="Runs at the same time.",
)
@click.option(
    "--processes",
    default=2,
    show_default=True,
    type=click.IntRange(1, 256),
    help='Most processes for tasks with pool="process".',
)
@click.option(
    "--grace",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Time to finish after SIGTERM; the rest is given back.",
)
@click.option("--name", metavar="NAME", help="Name of this worker; host and process by default.")
@click.option(
    "--url", metavar="URL", help="The service; by default the app's, BETIMES_URL, or the profile's."
)
@click.option(
    "--api-key-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with the API key; by default the app's, BETIMES_API_KEY, or the profile's.",
)
@click.option("--tenant", metavar="SLUG", help="Whose runs to do, with --dsn.")
@click.option(
    "--reload", is_flag=True, help="Start anew when Python files below this folder change."
)
@settings_options("database.dsn", "database.listen_dsn", "log.level")
@click.pass_context
def run(
    context: click.Context,
    place: str,
    queues: tuple[str, ...],
    concurrency: int,
    processes: int,
    grace: str,
    name: str | None,
    url: str | None,
    api_key_file: Path | None,
    tenant: str | None,
    *,
    reload: bool,
) -> int:
    """Lease, execute and report runs of the tasks of an app.

    \b
    betimes worker run shop.tasks:app -q mail -q default -c 20
    betimes worker run shop.tasks:app --dsn postgresql://…     without the API in between

    Ends with SIGTERM or Ctrl-C: once to finish what is running, twice to end at once.
    """  # noqa: D301 -- click reads this mark as "do not wrap"
    if reload:
        return _reload()
    from betimes.app import hands  # noqa: PLC0415 -- loaded only by who works
    from betimes.app.loop import run_to_end  # noqa: PLC0415 -- as above

    invocation = invocation_of(context)
    wishes = invocation.wishes
    direct = any(flag.key == "database.dsn" for flag in invocation.flags)
    if tenant is not None and not direct:
        raise click.UsageError("--tenant goes with --dsn: over HTTP the key says whose runs to do")
    key = None if api_key_file is None else api_key_file.read_text(encoding="utf-8").strip()
    if api_key_file is not None and not key:
        raise BadSetting(f"expected an API key in {api_key_file}, got nothing")
    options = hands.HandsOptions(
        place=place,
        queues=queues or ("default",),
        concurrency=concurrency,
        processes=processes,
        grace=_grace(grace),
        name=name,
        way=lambda app: app.way(url or wishes.url, key, profile=wishes.profile),
        tenant=tenant,
        log_level=next(
            (str(flag.value) for flag in invocation.flags if flag.key == "log.level"), "info"
        ),
    )
    settings = invocation.settings() if direct else None
    return run_to_end(hands.work(options, settings=settings))


def _grace(text: str) -> timedelta:
    try:
        return read_duration(text)
    except ValueError:
        raise click.UsageError(f"expected a time such as 30s for --grace, got {text!r}") from None


def _reload() -> int:
    from betimes.app.reloading import run_reloading  # noqa: PLC0415 -- for development only

    arguments = [one for one in sys.argv[1:] if one != "--reload"]
    return run_reloading(arguments, folder=Path.cwd(), announce=say)
