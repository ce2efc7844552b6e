"""The reference page of the command line, written from the tree itself."""

import click

from betimes.cli.main import COMMANDS, root

WIDTH = 88
HEAD = """# The command line

Written from the commands themselves (`scripts/write_cli.py`); `betimes COMMAND --help` says the
same. What every command understands, with variables and exit codes, is under
[options](#betimes-options).

"""


def markdown() -> str:
    """The whole page."""
    text = HEAD
    for path, command in commands():
        text += f"## betimes {' '.join(path)}\n\n```text\n{help_of(path, command)}```\n\n"
    return text.rstrip("\n") + "\n"


def commands() -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command of the tree with its words, parents before children."""
    found: list[tuple[tuple[str, ...], click.Command]] = []
    context = click.Context(root)
    for name in sorted(COMMANDS):
        command = root.get_command(context, name)
        if command is not None:
            _collect((name,), command, found)
    return found


def _collect(
    path: tuple[str, ...],
    command: click.Command,
    found: list[tuple[tuple[str, ...], click.Command]],
) -> None:
    found.append((path, command))
    if not isinstance(command, click.Group):
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            _collect((*path, name), inner, found)


def help_of(path: tuple[str, ...], command: click.Command) -> str:
    """The help of a command as a terminal of a fixed width shows it."""
    settings = {"help_option_names": ["-h", "--help"]}
    context = click.Context(root, info_name="betimes", **settings)  # type: ignore[arg-type]
    for name in path[:-1]:
        context = click.Context(click.Group(name), parent=context, info_name=name)
    context = click.Context(
        command, parent=context, info_name=path[-1], terminal_width=WIDTH, max_content_width=WIDTH
    )
    if path == ("options",):
        from betimes.cli.options import text  # noqa: PLC0415 -- one of many

        return text()
    return command.get_help(context) + "\n"
