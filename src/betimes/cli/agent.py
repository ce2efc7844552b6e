"""`betimes agent`: a worker that runs shell commands, for jobs taken over from a crontab.

The handler is an ordinary task of an ordinary app. A command gets a group of processes of its own,
so that a cancelled or timed-out run ends with everything it has started; what it prints becomes the
log of the run.
"""

import asyncio
import os
import pwd
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click

from betimes.cli.agent_limits import SHELLS, Limits, Started
from betimes.cli.invocation import invocation_of, settings_options
from betimes.sdk.application import App
from betimes.sdk.context import Context
from betimes.sdk.control import PermanentError

SHELL = "/bin/sh"
LINE_BYTES_MAX = 64 * 1024
TOLD_MAX = 9_000
GRACE_SECONDS = 5.0
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "TMPDIR")
STARTED = Started()
app = App(name="betimes-agent")


class CommandFailed(Exception):
    """The command ended with another code than 0."""


@app.task(name="shell")
async def shell(
    ctx: Context,
    command: str,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
    user: str | None = None,
) -> dict[str, int]:
    """Run a command as cron would: by a shell, with few variables, `stdin` on its input."""
    limits, given = STARTED.limits, env or {}
    limits.check(command, given)
    wanted = limits.user_of(user)
    told = {**_inherited(wanted), "BETIMES_RUN_ID": ctx.run_id, **given}
    process = await _start(command, limits.shell_of(given, SHELL), told, wanted)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process, stdin))
            group.create_task(_log(process.stdout, ctx.log.info))
            group.create_task(_log(process.stderr, ctx.log.warning))
            code = await process.wait()
    finally:
        await _end(process)
    if code != 0:
        raise CommandFailed(f"the command ended with {code}")
    return {"exit_code": code}


def _inherited(user: str | None) -> dict[str, str]:
    kept = {name: value for name in KEPT if (value := os.environ.get(name))}  # noqa: TID251 -- what a command of this machine inherits
    if user is None:
        return kept
    # Another user has another home; ours would only be closed to them.
    with suppress(KeyError):
        kept["HOME"] = pwd.getpwnam(user).pw_dir
    return {**kept, "USER": user, "LOGNAME": user}


async def _start(
    command: str, shell: str, environment: dict[str, str], user: str | None
) -> Process:
    try:
        # With the groups of the user, too: those of the agent may open more than the user may.
        groups = None if user is None else os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
        group = None if user is None else pwd.getpwnam(user).pw_gid
        return await asyncio.create_subprocess_exec(
            shell, "-c", command, env=environment, user=user, group=group, extra_groups=groups,
            stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, limit=LINE_BYTES_MAX,
        )  # fmt: skip
    except (OSError, KeyError, ValueError) as fault:
        raise PermanentError(f"the command could not be started: {fault}") from fault


async def _feed(process: Process, text: str | None) -> None:
    if process.stdin is None:
        return
    # Whoever does not read its input has not failed.
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write((text or "").encode())
        await process.stdin.drain()
    process.stdin.close()


async def _log(stream: asyncio.StreamReader | None, tell: Callable[[str], None]) -> None:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # longer than a line may be: told in pieces
            line = await stream.read(LINE_BYTES_MAX)
        if not line:
            return
        text = line.decode(errors="replace").rstrip("\n").replace("\0", "\ufffd")
        for start in range(0, max(1, len(text)), TOLD_MAX):
            tell(text[start : start + TOLD_MAX])


async def _end(process: Process) -> None:
    """End the whole group: politely, then not."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, wish)
        if process.returncode is not None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)


@click.group()
def agent() -> None:
    """Run shell commands of jobs, as a cron daemon would."""


@agent.command("run")
@click.option("--exec", "may_execute", is_flag=True, help="Yes, let the service run commands here.")
@click.option(
    "-Q",
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Queue to serve; may be said again.",
)
@click.option(
    "-c",
    "--concurrency",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Commands at the same time.",
)
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="NAME",
    help="User that payloads may choose beside the agent's own; may be said again.",
)
@click.option(
    "--shell",
    "shells",
    multiple=True,
    metavar="PATH",
    help="Shell that payloads may choose; sh and bash by default. May be said again.",
)
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="TEXT",
    help="Run this command, written so, and no others but those said like this.",
)
@click.option(
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Take no variables from payloads but this one; may be said again.",
)
@click.option("--name", metavar="NAME", help="Name of this agent; host and process by default.")
@click.option("--url", metavar="URL", help="Address of the service.")
@click.option(
    "--api-key-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with the API key.",
)
@settings_options("log.level")
@click.pass_context
def run_agent(
    context: click.Context, *, may_execute: bool, queues: tuple[str, ...], concurrency: int,
    name: str | None, url: str | None, api_key_file: Path | None, users: tuple[str, ...],
    shells: tuple[str, ...], commands: tuple[str, ...], variables: tuple[str, ...],
) -> int:  # fmt: skip
    """Serve the handler `shell`: payloads are {command, stdin, env, user}.

    Whoever may create runs of the tenant may then run commands here, as the user of this process.
    Another user, another shell, and with --command or --variable anything else, only as said here.
    """
    if not may_execute:
        raise click.UsageError("an agent runs commands that come from the service; say --exec.")
    from betimes.app import hands  # noqa: PLC0415 -- loaded only by who works
    from betimes.app.loop import run_to_end  # noqa: PLC0415 -- as above
    from betimes.cli.session import way_by  # noqa: PLC0415 -- as above

    STARTED.limits = Limits(
        users=frozenset(users),
        shells=frozenset(shells or SHELLS),
        commands=frozenset(commands) or None,
        variables=frozenset(variables) or None,
    )
    invocation = invocation_of(context)
    wishes = invocation.wishes
    wishes.url = url or wishes.url
    wishes.api_key_file = str(api_key_file) if api_key_file else wishes.api_key_file
    way = way_by(wishes)
    levels = [str(flag.value) for flag in invocation.flags if flag.key == "log.level"]
    options = hands.HandsOptions(
        place="betimes.cli.agent:app", queues=queues or ("default",), concurrency=concurrency,
        grace=timedelta(seconds=30), name=name, way=lambda _: way,
        log_level=levels[-1] if levels else "info",
    )  # fmt: skip
    return run_to_end(hands.work(options))
