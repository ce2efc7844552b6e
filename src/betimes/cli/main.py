"""The root of the command tree."""

import click

import betimes
from betimes.cli.next import explain_command, next_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(betimes.__version__, prog_name="betimes")
def main() -> None:
    """Betimes: every due thing done when due."""


main.add_command(next_command)
main.add_command(explain_command)
