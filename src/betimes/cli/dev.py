"""`betimes dev`: the whole service in one process."""

import click

from betimes.cli.invocation import invocation_of, say, settings_options
from betimes.config.sources import Flag


@click.command()
@settings_options(
    "embedded.data",
    "embedded.listen",
    "embedded.port",
    "database.dsn",
    "api.listen",
    "api.port",
    "server.node",
    "server.unsafe",
    "server.drain_timeout",
    "log.level",
    "log.format",
)
@click.option("--demo/--no-demo", default=True, help="Run demo jobs and show their runs.")
@click.pass_context
def dev(context: click.Context, *, demo: bool) -> int:
    """Run everything here, on an embedded PostgreSQL that is set up by itself.

    Nothing needs to be installed or configured. The data stays in --data between starts. End it
    with Ctrl-C: once to finish what is running, twice to end at once.
    """
    from betimes.app import run  # noqa: PLC0415 -- the service is loaded only by who runs it

    settings = invocation_of(context).settings(
        Flag("server.migrate", "betimes dev", value=True),
        Flag("target.loopback", "betimes dev", value=True),
        Flag("target.plain_http", "betimes dev", value=True),
    )
    show = click.echo if demo else None
    return run.run_to_end(run.serve(settings, announce=say, show=show, keep=True))
