"""The root of the command tree."""

import click

import betimes


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(betimes.__version__, prog_name="betimes")
def main() -> None:
    """Betimes: every due thing done when due."""
