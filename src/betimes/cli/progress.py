"""A bar for long work, on standard error and only before somebody's eyes."""

import click

from betimes.cli import machine

WIDTH = 30


class Progress:
    """How far it is; painted over and over on one line."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self._label = label
        self._shown = not quiet and machine.somebody_hears()
        self._painted = False

    def tell(self, done: int, total: int | None) -> None:
        """Paint the present state."""
        if not self._shown:
            return
        click.echo(f"\r{line(self._label, done, total)}\x1b[K", err=True, nl=False)
        self._painted = True

    def end(self) -> None:
        """Leave the line as it is."""
        if self._painted:
            click.echo(err=True)
            self._painted = False


def line(label: str, done: int, total: int | None) -> str:
    """One line of progress; without a total only a count."""
    if not total:
        return f"{label}  {done:,}"
    filled = round(min(1.0, done / total) * WIDTH)
    bar = "█" * filled + "░" * (WIDTH - filled)
    return f"{label}  {bar}  {done:,}/{total:,}  {done / total:.0%}"
