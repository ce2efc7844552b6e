"""Showing something again and again: repainted on a terminal, line by line elsewhere."""

from collections.abc import Callable
from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import Talk
from betimes.cli.forms import answer_of
from betimes.sdk import ambient

HOME, CLEAR_BELOW, CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
ALTERNATE, BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
Pause = Callable[[float], None]


def ambient_pause(seconds: float) -> None:
    """Only wait."""
    ambient.pause(seconds)


def watch(
    talk: Talk,
    read: Callable[[], Any],
    *,
    seconds: float,
    times: int | None = None,
    pause: Pause = ambient_pause,
) -> int:
    """Read and show until interrupted, or so many `times`."""
    if machine.somebody_reads() and talk.form in ("table", "wide"):
        return repaint(lambda: talk.text(read()), seconds=seconds, times=times, pause=pause)
    seen: dict[str, Any] = {}
    while True:
        changed(talk, read(), seen)
        if times is not None:
            times -= 1
            if times <= 0:
                return 0
        pause(seconds)


def changed(talk: Talk, value: Any, seen: dict[str, Any]) -> None:
    """Print what is new or different since the last look, one thing a line."""
    answer = answer_of(value)
    rows = answer.rows if answer.rows is not None else [answer.value]
    fresh = [row for row in rows if seen.get(_identity(row)) != row]
    for row in fresh:
        first = not seen
        seen[_identity(row)] = row
        text = talk.text([row])
        if talk.form in ("table", "wide", "csv") and not first and not talk.wishes.no_headers:
            text = "".join(text.splitlines(keepends=True)[1:])
        click.echo(text, nl=False)


def _identity(row: Any) -> str:
    if not isinstance(row, dict):
        return str(row)
    found = next((row[key] for key in ("id", "name", "run_id", "at") if row.get(key)), None)
    return str(found if found is not None else row)


def repaint(
    draw: Callable[[], str],
    *,
    seconds: float,
    times: int | None = None,
    pause: Pause = ambient_pause,
) -> int:
    """Paint over what was painted before, on a screen of its own."""
    click.echo(ALTERNATE, nl=False)
    try:
        while True:
            lines = draw().splitlines()
            height = max(1, screen_height() - 1)
            body = "".join(f"{line}{CLEAR_LINE}\n" for line in lines[:height])
            click.echo(f"{HOME}{body}{CLEAR_BELOW}", nl=False)
            if times is not None:
                times -= 1
                if times <= 0:
                    return 0
            pause(seconds)
    finally:
        click.echo(BACK, nl=False)


def screen_height() -> int:
    """How many lines there are."""
    import shutil  # noqa: PLC0415 -- only who watches pays

    return shutil.get_terminal_size().lines
