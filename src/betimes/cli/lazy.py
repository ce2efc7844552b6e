"""A group that loads a command when it is called, so that `--help` needs none of the service."""

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Place(NamedTuple):
    """Where a command lies, as `module:function`, and what the list of commands says of it."""

    path: str
    says: str


class LazyGroup(click.Group):
    """Knows its commands by name only; also guesses what a misspelt one was meant to be."""

    def __init__(self, *arguments: Any, places: Mapping[str, Place], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without loading anything."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, function = self._places[cmd_name].path.partition(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._says(ctx, name)) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close or "Did you mean" in error.message:
                raise
            guess = f"{error.message} Did you mean {close[0]}?"
            raise click.UsageError(guess, ctx) from error

    def _says(self, ctx: click.Context, name: str) -> str:
        if name in self._places:
            return self._places[name].says
        command = super().get_command(ctx, name)
        return command.get_short_help_str() if command else ""
