"""`betimes vault`: replace the keys that seal secrets and large payloads."""

from collections.abc import Awaitable, Callable

import click

from betimes.cli.invocation import invocation_of, settings_options
from betimes.config.settings import Settings

PLACES = settings_options("database.dsn", "embedded.data", "vault.keys_file")


@click.group()
def vault() -> None:
    """Replace the keys that seal secrets and large payloads."""


@vault.command("new-key")
def new_key() -> int:
    """Print a fresh master key; put it first in the list and keep a copy of it."""
    from betimes.app.dice import Dice  # noqa: PLC0415 -- the service is loaded only by who runs it
    from betimes.store.seal import KEY_BYTES  # noqa: PLC0415

    click.echo(Dice().entropy(KEY_BYTES).hex())
    return 0


@vault.command()
@PLACES
@click.pass_context
def rewrap(context: click.Context) -> int:
    """Wrap the data keys of all tenants under the first master key.

    Afterwards the others can be taken out of the list.
    """
    from betimes.app import run, vault  # noqa: PLC0415

    async def work(settings: Settings) -> str:
        async with run.a_node(settings) as node:
            return f"{await vault.rewrap(node)} data keys were wrapped anew"

    return _done(context, work)


@vault.command()
@click.option("--tenant", help="Only this one, by id or slug.")
@PLACES
@click.pass_context
def rotate(context: click.Context, tenant: str | None) -> int:
    """Give tenants new data keys, and seal under them what was sealed under older ones."""
    from betimes.app import run, vault  # noqa: PLC0415

    async def work(settings: Settings) -> str:
        async with run.a_node(settings) as node:
            rotated, resealed = await vault.rotate(node, tenant)
            return f"{rotated} data keys were replaced, {resealed} things were sealed anew"

    return _done(context, work)


def _done(context: click.Context, work: Callable[[Settings], Awaitable[str]]) -> int:
    from betimes.app import run  # noqa: PLC0415

    settings = invocation_of(context).settings()

    async def told() -> int:
        click.echo(await work(settings))
        return 0

    return run.run_to_end(told())
