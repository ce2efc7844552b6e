"""`betimes relay` and `betimes outbox`: enqueue from transactions of other databases."""

from datetime import timedelta

import click

from betimes.cli.invocation import invocation_of, settings_options
from betimes.outbox import SCHEMAS


@click.command()
@click.option(
    "--from", "address", required=True, envvar="BETIMES_OUTBOX", metavar="ADDRESS",
    help="Where the outbox is: postgresql://… or sqlite:///file.",
)  # fmt: skip
@click.option("--url", help="The service; BETIMES_URL or the profile without it.", metavar="URL")
@click.option(
    "--every", default=0.5, show_default=True, type=click.FloatRange(min=0.01), metavar="SECONDS",
    help="How often to look.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Carry what is there, then end.")
@settings_options("log.level", "log.format")
@click.pass_context
def relay(
    context: click.Context, address: str, *, url: str | None, every: float, once: bool
) -> int:
    """Carry what an outbox holds to the service: nothing lost, nothing doubled.

    The key is that of BETIMES_API_KEY or the profile. May be killed at any time; several may run
    side by side.
    """
    from betimes.app import relay as app  # noqa: PLC0415 -- loaded only by who runs it
    from betimes.app.run import run_to_end  # noqa: PLC0415 -- as above

    work = app.relay(
        invocation_of(context).settings(),
        address=address,
        url=url,
        every=timedelta(seconds=every),
        once=once,
    )
    return run_to_end(work)


@click.group()
def outbox() -> None:
    """Tables for enqueueing from other databases."""


@outbox.command()
@click.option(
    "--dialect", type=click.Choice(sorted(SCHEMAS)), default="postgresql", show_default=True,
    help="Whose SQL.",
)  # fmt: skip
def ddl(dialect: str) -> int:
    """Print the statements that make the table; they may be repeated."""
    click.echo(SCHEMAS[dialect], nl=False)
    return 0
