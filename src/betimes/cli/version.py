"""`betimes version`."""

import platform
from importlib.metadata import version as version_of

import click
import msgspec

import betimes


@click.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Form.")
def version(output: str) -> None:
    """Tell which release this is, and what it stands on."""
    facts = {
        "betimes": betimes.__version__,
        "python": platform.python_version(),
        "tzdata": version_of("tzdata"),
    }
    if output == "json":
        click.echo(msgspec.json.encode(facts).decode("utf-8"))
        return
    for name, value in facts.items():
        click.echo(f"{name:8} {value}")
