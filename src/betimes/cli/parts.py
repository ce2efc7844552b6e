"""The parts of a schedule, each by an option of its own: `--timezone`, `--overlap` and so on."""

from collections.abc import Mapping
from typing import Any

import click

from betimes.cli.said import duration

OVERLAPS = ("allow", "skip", "buffer_one", "buffer_all", "cancel_running", "replace")
PLACES: Mapping[str, tuple[str, ...]] = {
    "part_timezone": ("timezone",),
    "part_gap": ("dst", "gap"),
    "part_twice": ("dst", "overlap"),
    "part_overlap": ("overlap",),
    "part_catchup": ("catchup", "policy"),
    "part_window": ("catchup", "window"),
    "part_jitter": ("jitter",),
}
"""Where in a schedule each option belongs."""
DURATIONS = ("part_window", "part_jitter")


def schedule_options() -> list[click.Parameter]:
    """Options for what a schedule says beside its times."""
    return [
        click.Option(["--timezone", "part_timezone"], metavar="ZONE",
                     help="Whose clock the schedule goes by, such as Europe/Oslo."),
        click.Option(["--dst-gap", "part_gap"], type=click.Choice(["next", "skip", "shift"]),
                     help="When the clock jumps over its time."),
        click.Option(["--dst-overlap", "part_twice"],
                     type=click.Choice(["first", "second", "both"]),
                     help="When its time comes twice."),
        click.Option(["--overlap", "part_overlap"], type=click.Choice(OVERLAPS),
                     help="When the run before is not done yet."),
        click.Option(["--catchup", "part_catchup"], type=click.Choice(["none", "latest", "all"]),
                     help="What to do about fires that were missed."),
        click.Option(["--catchup-window", "part_window"], metavar="DURATION",
                     help="How old a missed fire may be."),
        click.Option(["--jitter", "part_jitter"], metavar="DURATION",
                     help="How far fires are spread."),
    ]  # fmt: skip


def parts_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of a schedule, as its members."""
    found: dict[str, Any] = {}
    for key, (*outer, name) in PLACES.items():
        value = given.get(key)
        if value is None:
            continue
        inside = found.setdefault(outer[0], {}) if outer else found
        inside[name] = duration(value) if key in DURATIONS else value
    return found


def with_parts(schedule: Any, parts: Mapping[str, Any]) -> Any:
    """A schedule with the parts that were said beside it."""
    if not parts:
        return schedule
    if isinstance(schedule, str):
        from betimes.domain.errors import Refused  # noqa: PLC0415 -- only who says parts pays
        from betimes.schedule.parse import shorthand  # noqa: PLC0415 -- as above

        try:
            schedule = shorthand(schedule)
        except Refused as refusal:
            raise click.UsageError(refusal.sentence) from None
    return _merged(schedule or {}, parts)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(under)
    for name, value in over.items():
        old = found.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        found[name] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return found
