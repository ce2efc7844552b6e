"""`betimes server`: run, migrate or check a node."""

from typing import Any

import click
import msgspec

from betimes.cli.drain import drain
from betimes.cli.invocation import Invocation, invocation_of, say, settings_options
from betimes.config.check import advice
from betimes.config.rule import keys_of
from betimes.config.settings import Settings
from betimes.config.values import show_value

DATABASE_OPTIONS = (
    "database.dsn",
    "database.listen_dsn",
    "embedded.data",
    "embedded.listen",
    "embedded.port",
)
NODE_OPTIONS = (
    "api.listen",
    "api.port",
    "server.roles",
    "server.node",
    "server.migrate",
    "server.unsafe",
    "server.drain_timeout",
    "log.level",
    "log.format",
)


@click.group(invoke_without_command=True)
@settings_options(*DATABASE_OPTIONS, *NODE_OPTIONS)
@click.pass_context
def server(context: click.Context) -> int | None:
    """Run, migrate or check a node of the service. Alone, it is `server start`."""
    return None if context.invoked_subcommand else _start(invocation_of(context))


@server.command()
@settings_options(*DATABASE_OPTIONS, *NODE_OPTIONS)
@click.pass_context
def start(context: click.Context) -> int:
    """Run a node until SIGTERM or Ctrl-C; a second one ends it at once."""
    return _start(invocation_of(context))


@server.command()
@settings_options(*DATABASE_OPTIONS)
@click.pass_context
def migrate(context: click.Context) -> int:
    """Bring the database to this release. Prints what was applied."""
    from betimes.app import run  # noqa: PLC0415 -- the service is loaded only by who runs it

    settings = invocation_of(context).settings()

    async def work() -> int:
        applied = await run.migrate(settings, progress=click.echo)
        if not applied:
            say("the database is up to date")
        return 0

    return run.run_to_end(work())


@server.command()
@settings_options(*DATABASE_OPTIONS, *NODE_OPTIONS)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Form.")
@click.pass_context
def check(context: click.Context, output: str) -> int:
    """Show every setting with its origin, and what is wrong with them and with the database.

    The database is asked only when its address is given.
    """
    report = _report(invocation_of(context))
    if output == "json":
        click.echo(msgspec.json.encode(report).decode("utf-8"))
    else:
        _print(report)
    return 0 if report["ok"] else 1


server.add_command(drain)


def _start(invocation: Invocation) -> int:
    from betimes.app import run  # noqa: PLC0415 -- the service is loaded only by who runs it

    return run.run_to_end(run.serve(invocation.settings(), announce=say))


def _report(invocation: Invocation) -> dict[str, Any]:
    examined = invocation.examined()
    complaints = [] if examined.problems else _database_complaints(examined.settings)
    return {
        "ok": not examined.problems and not complaints,
        "settings": {
            path: {
                "value": show_value(key, getattr(getattr(examined.settings, key.group), key.name)),
                "origin": examined.origins[path],
            }
            for path, key in keys_of(Settings).items()
        },
        "problems": list(examined.problems),
        "advice": advice(examined.settings),
        "database": complaints,
    }


def _database_complaints(settings: Settings) -> list[str]:
    if settings.database.dsn is None:
        return []
    from betimes.app import run  # noqa: PLC0415 -- needed only when there is somebody to ask

    complaints: list[str] = []

    async def work() -> int:
        complaints.extend(await run.database_complaints(settings))
        return 0

    run.run_to_end(work())
    return complaints


def _print(report: dict[str, Any]) -> None:
    width = max(len(path) for path in report["settings"])
    for path, setting in report["settings"].items():
        click.echo(f"{path:{width}}  {setting['value']:30}  {setting['origin']}")
    for remark in report["advice"]:
        click.echo(f"note: {remark}", err=True)
    for problem in report["problems"]:
        click.echo(f"problem: {problem}", err=True)
    for complaint in report["database"]:
        click.echo(f"database: {complaint}", err=True)
    click.echo("ok" if report["ok"] else "not ok", err=True)
