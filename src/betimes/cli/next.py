"""`betimes next` and `betimes explain`: what a schedule will do, without a server."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # the room of time is loaded when a command runs, not for --help
    from betimes.schedule import Fire, Schedule

EXIT_USAGE = 2
COUNT_MAX = 1_000


def _options(command: Any) -> Any:
    """The options that both commands share."""
    for option in (
        click.option("--tz", "timezone", default="UTC", show_default=True, help="IANA time zone."),
        click.option("--from", "start", metavar="TIME", help="Begin here instead of now (local)."),
        click.option("--dialect", default="unix", show_default=True, help="Cron dialect."),
        click.option("--seed", default="", help="Job id, which decides what H stands for."),
        click.option("--gap", type=click.Choice(["next", "skip", "shift"]), help="DST gap policy."),
        click.option(
            "--overlap", type=click.Choice(["first", "second", "both"]), help="DST overlap policy."
        ),
        click.option(
            "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Form."
        ),
        click.argument("expression"),
    ):
        command = option(command)
    return command


@click.command("next")
@click.option(
    "-n",
    "count",
    default=10,
    show_default=True,
    type=click.IntRange(1, COUNT_MAX),
    help="How many fires.",
)
@_options
def next_command(expression: str, count: int, output: str, **options: str | None) -> None:
    """Show when EXPRESSION fires next.

    \b
    betimes next "0 2 * * *" --tz Europe/Stockholm -n 3 --from 2026-03-28
    betimes next "every weekday at 9:30" --tz America/New_York
    """  # noqa: D301 -- click reads this mark as "do not wrap"
    from betimes.schedule import preview  # noqa: PLC0415 -- keeps `betimes --help` quick

    schedule, start = _read(expression, options)
    if output == "json":
        click.echo(json.dumps(preview(schedule, start, count), indent=2))
        return
    click.echo(schedule.describe())
    fires = list(schedule.fires(start, limit=count))
    for fire in fires:
        click.echo(_line(schedule, fire))
    if not fires:
        click.echo("  never again")


@click.command("explain")
@_options
def explain_command(expression: str, output: str, **options: str | None) -> None:
    """Say in words what EXPRESSION means and what may surprise about it.

    \b
    betimes explain "0 0 13 * 5"
    betimes explain "first monday of the month at noon" -o json
    """  # noqa: D301 -- click reads this mark as "do not wrap"
    from betimes.schedule import preview  # noqa: PLC0415 -- keeps `betimes --help` quick

    schedule, start = _read(expression, options)
    shown = preview(schedule, start, 5)
    if output == "json":
        click.echo(json.dumps({**shown, "schedule": schedule.to_dict()}, indent=2))
        return
    click.echo(shown["description"])
    click.echo(f"Read as   {schedule.canonical}")
    click.echo(f"Per day   {shown['per_day']:g}")
    for fire in schedule.fires(start, limit=5):
        click.echo(_line(schedule, fire))
    for warned in shown["warnings"]:
        when = f" ({warned['at']})" if warned["at"] else ""
        click.echo(f"  ! {warned['code']}{when}: {warned['detail']}")


def _read(expression: str, options: dict[str, str | None]) -> "tuple[Schedule, datetime]":
    """The schedule and the time to begin at; a refusal is a usage error with its sentence."""
    from betimes.domain.errors import Refused  # noqa: PLC0415 -- as above
    from betimes.schedule import parse  # noqa: PLC0415 -- as above

    wanted = {"gap": options["gap"], "overlap": options["overlap"]}
    dst = {name: value for name, value in wanted.items() if value} or None
    try:
        start = _start(options["start"], options["timezone"] or "UTC")
        schedule = parse(
            expression,
            timezone=options["timezone"],
            dialect=options["dialect"],
            now=start,
            seed=options["seed"] or "",
            dst=dst,
        )
    except Refused as refusal:
        raise click.UsageError(refusal.sentence) from None
    return schedule, start


def _start(text: str | None, timezone: str) -> datetime:
    from betimes.app.clock import SystemClock  # noqa: PLC0415 -- as above
    from betimes.schedule.moment import read_moment, to_datetime  # noqa: PLC0415 -- as above
    from betimes.schedule.zone import zone  # noqa: PLC0415 -- as above

    if text is None:
        return SystemClock().now()
    instant = read_moment(text, "/from").instant(zone(timezone))
    # One microsecond before, so that a fire at that very time is shown.
    return to_datetime((instant or 0) - 1)


def _line(schedule: "Schedule", fire: "Fire") -> str:
    local, utc = fire.local, fire.nominal.astimezone(UTC)
    offset = local.strftime("%z")
    clock = "%H:%M:%S" if local.second else "%H:%M"
    line = f"  {local:%a %d %b %Y} {local.strftime(clock)} {offset[:3]}:{offset[3:5]}   "
    line += f"{utc.strftime(clock)}Z"
    return line + "".join(f"   ! {note}" for note in _notes(schedule, fire))


def _notes(schedule: "Schedule", fire: "Fire") -> list[str]:
    intended = schedule.intended(fire)
    notes = []
    if intended is not None:
        named = intended[11:16]
        notes.append(f"{named} does not exist that day (clock jumps); moved to {fire.local:%H:%M}")
    if "dst_overlap_second" in fire.flags:
        notes.append(f"{fire.local:%H:%M} comes twice that day; this is the second")
    if "dst_overlap_first" in fire.flags:
        notes.append(f"{fire.local:%H:%M} comes twice that day; this is the first")
    if "calendar_excluded" in fire.flags:
        notes.append("rolled here by a calendar")
    if "jittered" in fire.flags:
        notes.append(f"starts at {fire.effective:%H:%M:%S}Z")
    return notes
