"""`betimes producer`: which database roles may enqueue inside transactions of their own."""

import click

from betimes.cli.invocation import invocation_of, say, settings_options

TENANT_DEFAULT = "default"
AT = ("database.dsn", "database.listen_dsn", "embedded.data")


@click.group()
def producer() -> None:
    """Let applications enqueue by SQL, in the same transaction as their data.

    \b
    betimes producer add shop --dsn postgresql://…
    """  # noqa: D301 -- click reads the \b


@producer.command()
@click.argument("role")
@click.option("--tenant", default=TENANT_DEFAULT, help="For whom it enqueues.", metavar="SLUG")
@click.option(
    "--hints/--no-hints",
    default=True,
    help="Whether its commits notify; without, runs start up to a tenth of a second later.",
)
@settings_options(*AT)
@click.pass_context
def add(context: click.Context, role: str, *, tenant: str, hints: bool) -> int:
    """Let a database role call betimes.enqueue_v1, and nothing else."""
    from betimes.app import producers, run  # noqa: PLC0415 -- the service is loaded by who needs it
    from betimes.ops.producers import admit_producer  # noqa: PLC0415 -- as above

    settings = invocation_of(context).settings()

    async def work() -> int:
        await producers.on_database(
            settings, lambda database: admit_producer(database, role, tenant, hints=hints)
        )
        say(f"the role {role} may enqueue for the tenant {tenant}")
        return 0

    return run.run_to_end(work())


@producer.command()
@click.argument("role")
@click.option("--tenant", default=TENANT_DEFAULT, help="For whom it enqueued.", metavar="SLUG")
@settings_options(*AT)
@click.pass_context
def remove(context: click.Context, role: str, *, tenant: str) -> int:
    """Do not let a database role enqueue for a tenant any longer."""
    from betimes.app import producers, run  # noqa: PLC0415 -- as above
    from betimes.ops.producers import dismiss_producer  # noqa: PLC0415 -- as above

    settings = invocation_of(context).settings()

    async def work() -> int:
        await producers.on_database(
            settings, lambda database: dismiss_producer(database, role, tenant)
        )
        say(f"the role {role} may not enqueue for the tenant {tenant}")
        return 0

    return run.run_to_end(work())


@producer.command("list")
@settings_options(*AT)
@click.pass_context
def list_command(context: click.Context) -> int:
    """Show every role that may, with its tenant."""
    from betimes.app import producers, run  # noqa: PLC0415 -- as above
    from betimes.ops.producers import list_producers  # noqa: PLC0415 -- as above

    settings = invocation_of(context).settings()

    async def work() -> int:
        for one in await producers.on_database(settings, list_producers):
            click.echo(f"{one.role}\t{one.tenant}\t{'hints' if one.hints else 'no hints'}")
        return 0

    return run.run_to_end(work())
