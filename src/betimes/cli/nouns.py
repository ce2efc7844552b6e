"""The nouns as attributes, so that the root can name them without loading the table."""

import click

from betimes.cli.build import alone, group
from betimes.cli.tree import ALONE, NOUNS


def __getattr__(name: str) -> click.Command:
    """A group or a lone command, made when somebody asks for it."""
    plain = name.replace("_", "-")
    if plain in NOUNS:
        return group(plain)
    if plain in ALONE:
        return alone(plain)
    raise AttributeError(name)
