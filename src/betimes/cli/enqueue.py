"""`betimes enqueue`: work without a job."""

from typing import Any

import click

from betimes.cli.build import wait_options
from betimes.cli.command import ServiceCommand, Talk
from betimes.cli.forms import Look
from betimes.cli.offer import Member
from betimes.cli.perform import merged, seconds
from betimes.cli.said import body_of, duration, json_value, option_of
from betimes.cli.surface import OFFERS
from betimes.cli.times import read_time

OFFER, MANY = OFFERS["runs.create"], OFFERS["runs.create_many"]
BATCH_MAX = 1000
ALREADY = frozenset({"handler", "payload", "delay", "at", "dedupe.key"})
MEMBERS: tuple[Member, ...] = tuple(
    one for one in OFFER.body or () if one.place not in ALREADY and one.place != "target"
)
SAYS = """Do something now or later, without a job.

PAYLOAD is JSON, @FILE, or - for standard input. With --batch it is lines of JSON, one payload for
each run.
"""


@click.pass_context
def called(context: click.Context, /, **given: Any) -> int:
    """Make the runs and wait where that was asked for."""
    talk = Talk(context, Look(noun="run"))
    body = merged(
        {"handler": given["handler"]},
        body_of(MEMBERS, given, now=talk.now, zone=talk.zone),
    )
    if given["delay"]:
        body["delay"] = duration(given["delay"])
    if given["at"]:
        body["at"] = read_time(given["at"], now=talk.now, zone=talk.zone)
    if given["dedupe_key"]:
        body.setdefault("dedupe", {})["key"] = given["dedupe_key"]
    if given["batch"]:
        return _many(talk, body, given["payload"] or "-")
    if given["payload"] is not None:
        body["payload"] = json_value(given["payload"])
    headers = {"idempotency-key": given["key"]} if given["key"] else {}
    made = talk.session.call(OFFER, body=body, headers=headers)
    if given["wait"]:
        from betimes.cli.follow import await_end  # noqa: PLC0415 -- only who waits pays

        limit = given["wait_for"]
        return await_end(talk, made, seconds=seconds(limit) if limit else None)
    note = " (there already)" if made.get("deduplicated") else ""
    talk.done(f"run/{made['id']} {made['state']}{note}", made)
    return 0


def _many(talk: Talk, body: dict[str, Any], source: str) -> int:
    """A run for every line, a thousand a request."""
    from betimes.cli.progress import Progress  # noqa: PLC0415 -- only batches need it
    from betimes.cli.said import content_of  # noqa: PLC0415 -- as above

    lines = [line for line in content_of(source).splitlines() if line.strip()]
    items = [{**body, "payload": json_value(line)} for line in lines]
    progress = Progress("enqueue", quiet=bool(talk.wishes.quiet))
    made: list[Any] = []
    for start in range(0, len(items), BATCH_MAX):
        told = talk.session.call(MANY, body={"items": items[start : start + BATCH_MAX]})
        made += told["items"]
        progress.tell(len(made), len(items))
    progress.end()
    talk.done(f"{len(made)} runs queued", made)
    return 0


enqueue = ServiceCommand(
    "enqueue",
    callback=called,
    help=SAYS,
    example="""betimes enqueue send_invoice '{"customer_id": 7}' --in 10m --dedupe inv-7 --wait""",
    params=[
        click.Argument(["handler"]),
        click.Argument(["payload"], required=False),
        click.Option(["--in", "delay"], metavar="DURATION", help="Not before so long from now."),
        click.Option(["--at"], metavar="TIME", help="Not before this time."),
        click.Option(["--dedupe", "dedupe_key"], metavar="KEY",
                     help="A second one with this key is the first one."),
        click.Option(["--batch"], is_flag=True, help="PAYLOAD is lines of JSON; a run for each."),
        *(option_of(one) for one in MEMBERS),
        click.Option(["--idempotency-key", "key"], metavar="KEY",
                     help="The same key acts once only."),
        *wait_options(),
    ],
)  # fmt: skip
