"""`betimes dev`: the whole service in one process."""

from ipaddress import ip_address

import click

from betimes.cli.invocation import invocation_of, say, settings_options
from betimes.config.sources import Flag
from betimes.domain.errors import BadSetting


def is_local(listen: str) -> bool:
    """Whether an address to listen on is reached from this machine only."""
    try:
        return ip_address(listen.strip("[]")).is_loopback
    except ValueError:
        return listen == "localhost"


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
@click.option(
    "--expose",
    is_flag=True,
    help="Listen beyond this machine, though jobs may call whatever listens on it.",
)
@click.pass_context
def dev(context: click.Context, *, demo: bool, expose: bool) -> int:
    """Run everything here, on an embedded PostgreSQL that is set up by itself.

    Nothing needs to be installed or configured. The data stays in --data between starts. End it
    with Ctrl-C: once to finish what is running, twice to end at once. It listens on this machine
    only, unless --expose is said: its jobs may call whatever else listens here.
    """
    from betimes.app import run  # noqa: PLC0415 -- the service is loaded only by who runs it

    settings = invocation_of(context).settings(
        Flag("server.migrate", "betimes dev", value=True),
        Flag("target.loopback", "betimes dev", value=True),
        Flag("target.plain_http", "betimes dev", value=True),
    )
    if not (expose or is_local(settings.api.listen)):
        raise BadSetting(
            f"expected api.listen on this machine, such as 127.0.0.1, got {settings.api.listen}: "
            "in development, jobs may call whatever listens on this machine, without encryption, "
            "so whoever reaches the port and has a key reaches all of it. --expose opens that; "
            "`betimes server` serves others without it"
        )
    show = click.echo if demo else None
    return run.run_to_end(run.serve(settings, announce=say, show=show, keep=True))
