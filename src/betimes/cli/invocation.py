"""What one call of the program was told: flags become settings, wherever in the line they stand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from betimes.cli.wishes import Wishes

if TYPE_CHECKING:  # settings are loaded by commands that have some, not for --help
    from betimes.config.load import Examined
    from betimes.config.settings import Settings
    from betimes.config.sources import Flag

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """Collected by the options below while click reads the line."""

    debug: bool = False
    config: Path | None = None
    flags: "list[Flag]" = field(default_factory=list)
    wishes: Wishes = field(default_factory=Wishes)

    def settings(self, *before: "Flag") -> "Settings":
        """The settings, or `BadSettings`; `before` holds what the flags may overrule."""
        from betimes.config.load import load  # noqa: PLC0415 -- see above

        return load(file=self.config, flags=[*before, *self.flags])

    def examined(self) -> "Examined":
        """The settings with their origins and all their problems."""
        from betimes.config.load import examine  # noqa: PLC0415 -- see above

        return examine(file=self.config, flags=self.flags)


class Option(NamedTuple):
    """A flag with a name of its own for one setting."""

    names: tuple[str, ...]
    key: str
    says: str
    is_switch: bool = False
    metavar: str = "TEXT"


OPTIONS = {
    option.key: option
    for option in (
        Option(("--dsn",), "database.dsn", "PostgreSQL to use instead of the embedded one.",
               metavar="ADDRESS"),
        Option(("--listen-dsn",), "database.listen_dsn", "Direct address, when --dsn is a pooler.",
               metavar="ADDRESS"),
        Option(("--roles",), "server.roles",
               "What to do: api,coordinator,worker,janitor,dispatcher.", metavar="A,B"),
        Option(("--node",), "server.node", "Name of this node.", metavar="NAME"),
        Option(("--migrate",), "server.migrate", "Apply pending migrations first.", is_switch=True),
        Option(("--unsafe",), "server.unsafe", "Serve even if the database may lose work.",
               is_switch=True),
        Option(("--drain-timeout",), "server.drain_timeout", "Time to finish after SIGTERM.",
               metavar="TIME"),
        Option(("--data",), "embedded.data", "Folder of the embedded PostgreSQL.", metavar="DIR"),
        Option(("--pg-listen",), "embedded.listen", "Let it listen on this address as well.",
               metavar="ADDRESS"),
        Option(("--pg-port",), "embedded.port", "Its port.", metavar="PORT"),
        Option(("--listen",), "api.listen", "Address of the API.", metavar="ADDRESS"),
        Option(("--port",), "api.port", "Port of the API.", metavar="PORT"),
        Option(("--pepper-file",), "api.pepper_file", "File with the pepper of API keys.",
               metavar="FILE"),
        Option(("--keys-file",), "vault.keys_file", "File with the master keys.", metavar="FILE"),
        Option(("--log-level",), "log.level", "debug, info, warning or error.", metavar="LEVEL"),
        Option(("--log-format",), "log.format", "auto, console or json.", metavar="FORMAT"),
    )
}  # fmt: skip


def settings_options(*keys: str) -> Callable[[Command], Command]:
    """The flags of these settings, and --config, --set and --debug."""

    def decorate(command: Command) -> Command:
        decorated = debug_option(_config_option(_set_option(command)))
        for key in reversed(keys):
            decorated = _option(OPTIONS[key])(decorated)
        return decorated

    return decorate


def debug_option(command: Command) -> Command:
    """`-v` or `--debug`: more talk, and tracebacks."""
    return click.option(
        "-v", "--debug", is_flag=True, expose_value=False, callback=_debug,
        help="Tell more, tracebacks included.",
    )(command)  # fmt: skip


def invocation_of(context: click.Context) -> Invocation:
    """What this call was told so far."""
    return context.find_root().ensure_object(Invocation)


def keep_flag(context: click.Context, key: str, name: str, value: object) -> None:
    """Remember what a flag said about a setting."""
    from betimes.config.sources import Flag  # noqa: PLC0415 -- see above

    invocation_of(context).flags.append(Flag(key, name, value))


def say(sentence: str) -> None:
    """Talk goes to stderr; stdout is for data."""
    click.echo(f"betimes: {sentence}", err=True)


def _option(option: Option) -> Callable[[Command], Command]:
    def remember(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value is not None:
            keep_flag(context, option.key, option.names[0], value)

    return click.option(
        *option.names, default=None, expose_value=False, callback=remember,
        is_flag=option.is_switch, metavar=None if option.is_switch else option.metavar,
        type=bool if option.is_switch else str, help=option.says,
    )  # fmt: skip


def _set_option(command: Command) -> Command:
    return click.option(
        "--set", "pairs", multiple=True, metavar="KEY=VALUE", expose_value=False,
        callback=_remember_pairs, help="Any setting, e.g. --set worker.slots=50.",
    )(command)  # fmt: skip


def _config_option(command: Command) -> Command:
    return click.option(
        "--config", type=click.Path(path_type=Path, dir_okay=False), expose_value=False,
        callback=_remember_config, help="TOML file with settings, instead of betimes.toml.",
    )(command)  # fmt: skip


def _remember_pairs(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> None:
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"expected KEY=VALUE, got {pair!r}.", context, parameter)
        keep_flag(context, key.strip(), "--set", value)


def _remember_config(
    context: click.Context, _parameter: click.Parameter, path: Path | None
) -> None:
    if path is not None:
        invocation_of(context).config = path


def _debug(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        invocation_of(context).debug = True
        keep_flag(context, "log.level", "--debug", "debug")
