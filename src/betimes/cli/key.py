"""`betimes key`: the way in when nobody has a key yet, or nobody any more."""

import click

from betimes.cli.invocation import invocation_of, settings_options


@click.group()
def key() -> None:
    """Make the first administrator's key."""


@key.command()
@settings_options("database.dsn", "database.listen_dsn", "embedded.data", "api.pepper_file")
@click.option("--another", is_flag=True, help="Make one although there is one already.")
@click.pass_context
def bootstrap(context: click.Context, *, another: bool) -> int:
    """Make the first administrator's key for the default tenant and print it, this once.

    Needs access to the database and to the pepper, not to the API. When there is an administrator's
    key that works, none is made, unless --another says so: for whoever has lost it.
    """
    from betimes.app import run  # noqa: PLC0415 -- the service is loaded only by who runs it

    settings = invocation_of(context).settings()

    async def work() -> int:
        click.echo(await run.make_key(settings, another=another))
        return 0

    return run.run_to_end(work())
