"""`betimes listen`: events as they happen, printed or handed on to a program under development."""

import os
from fnmatch import fnmatchcase
from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.forms import Look
from betimes.cli.invocation import say
from betimes.cli.looks import cell, column
from betimes.cli.tree import NOUNS
from betimes.domain import webhook
from betimes.domain.errors import BadSetting
from betimes.sdk import ambient, profiles

LOOK = Look(tuple(map(column, NOUNS["event"].columns.split())))
SECRET_BYTES = 32
FORWARD_SECONDS = 20.0


@service_command(
    "listen",
    look=LOOK,
    example="betimes listen --forward-to localhost:3000/hooks --events 'run.*'",
)
@click.option("--forward-to", metavar="URL", help="POST every event there, signed.")
@click.option(
    "--events",
    multiple=True,
    metavar="TYPE",
    help="Only events of this type; * stands for anything.",
)
@click.option("--after", metavar="EVENT", help="Begin behind this event instead of now.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many events.")
def listen(
    talk: Talk, *, forward_to: str | None, events: tuple[str, ...], after: str | None,
    count: int | None,
) -> int:  # fmt: skip
    """Show events as they happen.

    With --forward-to each one is sent on as a signed CloudEvent, as webhooks are; the secret stays
    the same for every start of the profile.
    """
    patterns = [part for one in events for part in one.split(",") if part]
    plain = ",".join(patterns) if not any("*" in one for one in patterns) else None
    forward = Forward(talk, forward_to) if forward_to else None
    if forward is not None:
        say(f"ready; signing secret {forward.shown} (same on every start of this profile)")
    left = count
    for event in talk.session.client.stream_events(types=plain or None, last_event_id=after):
        told = event.data
        if patterns and not any(fnmatchcase(told["type"], one) for one in patterns):
            continue
        if forward is not None:
            eye = talk.eye()
            status = forward.send(told)
            click.echo(f"{cell(told['at'], 'time', eye)}  {told['type']:20}  {status}")
        elif talk.for_people:
            click.echo(_line(talk, told))
        else:
            talk.show([told])
        if left is not None:
            left -= 1
            if left == 0:
                return 0
    return 0


def _line(talk: Talk, told: dict[str, Any]) -> str:
    eye = talk.eye()
    return f"{cell(told['at'], 'time', eye)}  {told['type']:20}  {cell(told['data'], 'full', eye)}"


class Forward:
    """Sends events to one address, signed as webhooks are."""

    def __init__(self, talk: Talk, to: str) -> None:
        from betimes.sdk.address import read_address  # noqa: PLC0415 -- only who forwards pays
        from betimes.sdk.sync_http import SyncHttp  # noqa: PLC0415 -- as above

        self._address = read_address(to if "://" in to else f"http://{to}")
        self._http = SyncHttp(self._address)
        self._source = talk.way.url
        self._secret = secret_of(talk)
        self.shown = webhook.shown_secret(self._secret)

    def send(self, event: dict[str, Any]) -> str:
        """Send one event; what came of it, in a word."""
        import msgspec  # noqa: PLC0415 -- as above

        from betimes.sdk.errors import Unreachable  # noqa: PLC0415 -- as above
        from betimes.sdk.exchange import Request  # noqa: PLC0415 -- as above

        body = msgspec.json.encode(cloud_event(event, self._source))
        stamp = int(machine.now().timestamp())
        headers = {
            "content-type": "application/cloudevents+json",
            "user-agent": "betimes-listen",
            webhook.ID: event["id"],
            webhook.TIMESTAMP: str(stamp),
            webhook.SIGNATURE: webhook.sign([self._secret], event["id"], stamp, body),
        }
        # An address names a path already; a request adds nothing to it.
        request = Request(
            method="POST", path="", headers=headers, body=body,
            timeout=FORWARD_SECONDS, repeatable=False,
        )  # fmt: skip
        try:
            return str(self._http.send(request).status)
        except Unreachable as lost:
            return str(lost)


def cloud_event(event: dict[str, Any], source: str) -> dict[str, Any]:
    """An event as CloudEvents 1.0 write it."""
    return {
        "specversion": "1.0",
        "id": event["id"],
        "type": event["type"],
        "source": source,
        "subject": event["subject"],
        "time": event["at"],
        "datacontenttype": "application/json",
        "data": event["data"],
    }


def secret_of(talk: Talk) -> bytes:
    """The secret of the profile, made once and kept."""
    path = profiles.place()
    known = profiles.read(path)
    name = talk.wishes.profile or ambient.variable("BETIMES_PROFILE") or known.current
    kept = known.by_name.setdefault(name, {})
    if "listen_secret" in kept:
        return webhook.read_secret(kept["listen_secret"])
    secret = os.urandom(SECRET_BYTES)
    kept["listen_secret"] = webhook.shown_secret(secret)
    try:
        profiles.write(path, known)
    except OSError as fault:
        raise BadSetting(f"expected to keep the secret in {path}, got {fault}") from fault
    return secret
