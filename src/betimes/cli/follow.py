"""Waiting for an end, and telling what happens until then: runs, their logs, long work."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.completing import NameOf
from betimes.cli.forms import Look
from betimes.cli.looks import clean, column
from betimes.cli.perform import seconds
from betimes.cli.progress import Progress
from betimes.cli.surface import OFFERS
from betimes.cli.times import exact, moment_of
from betimes.cli.tree import NOUNS
from betimes.cli.waking import Waker, types_of
from betimes.cli.watching import watch
from betimes.sdk import ambient
from betimes.sdk.errors import ScopeMissing

OK, RUN_FAILED, STILL_PENDING = 0, 7, 8
WAIT_SECONDS = 20.0
POLL_SECONDS = 1.0
NO_STREAM = frozenset({"rate_limited", "overloaded", "draining", "method_not_allowed", "not_found"})
"""Refusals after which looking again and again may still work, or tells what is wrong."""
ENDED = frozenset({"succeeded", "dead", "cancelled", "skipped", "expired", "missed"})
OPERATION_ENDED = frozenset({"succeeded", "failed", "cancelled"})
RUN_LOOK = Look(
    tuple(map(column, NOUNS["run"].columns.split())),
    tuple(map(column, NOUNS["run"].wide.split())),
    "run",
)


@service_command(
    "watch", look=RUN_LOOK, example="betimes run watch run_01JD --exit-status && ./deploy"
)
@click.argument("run", type=NameOf("run"))
@click.option("--exit-status", is_flag=True, help="Fail (7) unless the run succeeds.")
@click.option("--for", "limit", metavar="DURATION", help="Give up (8) after so long.")
def watch_run(talk: Talk, run: str, *, exit_status: bool, limit: str | None) -> int:
    """Wait for a run to end, telling every state it goes through."""
    code = await_run(talk, run, seconds=seconds(limit) if limit else None)
    return OK if code == RUN_FAILED and not exit_status else code


def await_run(talk: Talk, run: str, *, seconds: float | None) -> int:
    """Wait for a run; 7 when it did not succeed, 8 when patience ended first."""
    began = machine.monotonic()
    state = None
    while True:
        left = None if seconds is None else seconds - (machine.monotonic() - began)
        wait = WAIT_SECONDS if left is None else max(0.0, min(WAIT_SECONDS, left))
        told = talk.session.call(OFFERS["runs.wait"], {"run": run}, query={"timeout": wait})
        if told["state"] != state:
            state = told["state"]
            talk.remark(f"{run}  {state}")
        if state in ENDED:
            talk.show(_whole(talk, run) or told)
            return OK if state == "succeeded" else RUN_FAILED
        if left is not None and left <= wait:
            talk.show(told)
            return STILL_PENDING


def _whole(talk: Talk, run: str) -> Mapping[str, Any] | None:
    """A run with its result, for who may see that."""
    try:
        found: Mapping[str, Any] = talk.session.call(
            OFFERS["runs.get"], {"run": run}, query={"view": "full"}
        )
    except ScopeMissing:
        return None
    return found


def await_end(talk: Talk, answer: Mapping[str, Any], *, seconds: float | None) -> int:
    """Wait for whatever an answer began: a run, or long work."""
    made = answer.get("run") if isinstance(answer.get("run"), Mapping) else answer
    name = str((made or {}).get("id", ""))
    if name.startswith("op_"):
        return await_operation(talk, name, seconds=seconds)
    if name.startswith("run_"):
        return await_run(talk, name, seconds=seconds)
    talk.show(answer)
    return OK


@service_command("wait")
@click.argument("operation", type=NameOf("operation"))
@click.option("--for", "limit", metavar="DURATION", help="Give up (8) after so long.")
def wait_operation(talk: Talk, operation: str, limit: str | None) -> int:
    """Wait for long work to end, with a bar while it goes on."""
    return await_operation(talk, operation, seconds=seconds(limit) if limit else None)


def await_operation(talk: Talk, operation: str, *, seconds: float | None) -> int:
    """Wait for long work; 7 when it failed, 8 when patience ended first."""
    began = machine.monotonic()
    progress = Progress(operation, quiet=bool(talk.wishes.quiet))
    try:
        while True:
            told = talk.session.call(OFFERS["operations.get"], {"operation": operation})
            progress.tell(told["progress"]["done"], told["progress"]["total"])
            if told["state"] in OPERATION_ENDED:
                break
            if seconds is not None and machine.monotonic() - began >= seconds:
                progress.end()
                talk.show(told)
                return STILL_PENDING
            ambient.pause(POLL_SECONDS)
    finally:
        progress.end()
    talk.show(told)
    return OK if told["state"] == "succeeded" else RUN_FAILED


@service_command("logs", example="betimes run logs run_01JD -f")
@click.argument("run", type=NameOf("run"))
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--attempt", type=int, help="Only of this attempt.")
@click.option("--after", type=int, default=0, help="Only lines behind this number.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]),
              help="Only lines of this weight or more.")  # fmt: skip
def logs(
    talk: Talk, run: str, *, follow: bool, attempt: int | None, after: int, level: str | None
) -> int:
    """Print what a run has logged."""
    levels = ["debug", "info", "warning", "error"]
    wanted = set(levels[levels.index(level) :]) if level else set(levels)
    if follow:
        after, ended = _stream_lines(talk, run, attempt, after, wanted)
        if ended:
            return OK
    while True:
        # The state first: lines written before the end are then read after it.
        ended = not follow or _ended(talk, run)
        after = _print_lines(talk, run, attempt, after, wanted)
        if ended:
            return OK
        ambient.pause(POLL_SECONDS)


def _stream_lines(
    talk: Talk, run: str, attempt: int | None, after: int, wanted: set[str]
) -> tuple[int, bool]:
    """Print lines as the service streams them; the last one's number, and whether the run ended."""
    from betimes.sdk.errors import ApiError  # noqa: PLC0415 -- see Talk

    try:
        for event in talk.session.client.stream_log(run, after=after, attempt=attempt):
            if event.type == "end":
                return after, True
            after = int(event.id or after)
            _print(talk, [event.data], wanted)
    except ApiError as refused:
        if refused.problem.code in NO_STREAM:
            return after, False
        raise
    return after, False


def _print(talk: Talk, lines: Sequence[Mapping[str, Any]], wanted: set[str]) -> None:
    shown = [line for line in lines if line["level"] in wanted]
    if talk.for_people:
        for line in shown:
            click.echo(log_line(talk, line))
    elif shown:
        talk.show(shown)


def _ended(talk: Talk, run: str) -> bool:
    return talk.session.call(OFFERS["runs.get"], {"run": run})["state"] in ENDED


def _print_lines(talk: Talk, run: str, attempt: int | None, after: int, wanted: set[str]) -> int:
    """Print every line behind one; the number of the last."""
    while True:
        query = {"after": after, "attempt": attempt, "limit": 1000}
        told = talk.session.call(OFFERS["runs.logs"], {"run": run}, query=query)
        _print(talk, told["items"], wanted)
        if not told["items"] or told["next_after"] == after:
            return after
        after = int(told["next_after"])


def log_line(talk: Talk, line: Mapping[str, Any]) -> str:
    """One line of a log as people read it."""
    at = moment_of(line["at"])
    when = exact(at, talk.zone) if at else line["at"]
    fields = "".join(f" {key}={value}" for key, value in (line.get("fields") or {}).items())
    return clean(f"{when} {line['level']:7} {line['message']}{fields}")


@service_command("watch", look=RUN_LOOK)
@click.argument("job", type=NameOf("job"))
@click.option("--interval", default="2s", metavar="DURATION", show_default=True,
              help="How often to look.")  # fmt: skip
@click.option("--limit", default=20, show_default=True, help="How many runs to show.")
def watch_job(talk: Talk, job: str, *, interval: str, limit: int) -> int:
    """Show the runs of a job as they happen, the newest first."""
    wanted = {"job": talk.session.job_id(job)}

    def read() -> list[Any]:
        return list(talk.session.rows(OFFERS["runs.list"], query=wanted, most=limit))

    def concerns(event: Mapping[str, Any]) -> bool:
        return bool(event["data"].get("job_id", wanted["job"]) == wanted["job"])

    with Waker(talk.way, types_of("run"), concerns) as waker:
        return watch(talk, read, seconds=seconds(interval), pause=waker.pause)
