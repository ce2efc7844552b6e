"""`betimes top`: the service at a glance, live: queues, workers, what runs and what is due."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.forms import Look
from betimes.cli.looks import BOLD, DIM, Eye, column, table
from betimes.cli.perform import seconds
from betimes.cli.present import painted, spark
from betimes.cli.surface import OFFERS
from betimes.cli.times import exact
from betimes.cli.watching import repaint, watch

QUEUES_MOST, WORKERS_MOST, RUNS_MOST, SOON_MOST = 15, 8, 8, 8
SERIES = 30
PAGES_MOST = 5
"""A page may be empty: the service looks at some thousand runs for each."""
AT_ONCE = 6
"""Connections of one screen: many slow queues must not add up, nor crowd others out."""
T = TypeVar("T")
QUEUE_COLUMNS = (
    "QUEUE=name STATE=state WAITING=waiting RUNNING=running SCHEDULED=scheduled "
    "OLDEST=oldest_age_seconds:seconds DUE/MIN=recent"
)
WORKER_COLUMNS = "WORKER=name STATE=state BUSY=load QUEUES=queues HEARTBEAT=heartbeat_at:when"
RUN_COLUMNS = "RUNNING=id HANDLER=handler QUEUE=queue ATTEMPT=attempt STARTED=started_at:when"
SOON_COLUMNS = (
    "DUE=due_at:when KIND=kind JOB=job_group~job_name|job_id HANDLER=handler QUEUE=queue "
    "WILL_RUN=will_run REASON=reason_code"
)
QUEUE_LOOK = Look(tuple(map(column, QUEUE_COLUMNS.split())), noun="queue")


@service_command("top")
@click.option(
    "--interval", default="2s", metavar="DURATION", show_default=True, help="How often to look."
)
@click.option("--once", is_flag=True, help="Paint once and end.")
def top(talk: Talk, *, interval: str, once: bool) -> int:  # fmt: skip
    """Show the service at a glance, live: queues, workers, what runs and what is due."""
    if not talk.for_people:
        talk.show(glance(talk))
        return 0
    if once or not machine.somebody_reads():
        click.echo(screen(glance(talk), talk.eye(), talk.way.url), nl=False)
        return 0
    return repaint(
        lambda: screen(glance(talk), talk.eye(), talk.way.url), seconds=seconds(interval)
    )


@service_command("top", look=QUEUE_LOOK)
@click.option(
    "--interval", default="2s", metavar="DURATION", show_default=True, help="How often to look."
)
@click.option("--once", is_flag=True, help="Show it once and end.")
def queues(talk: Talk, *, interval: str, once: bool) -> int:  # fmt: skip
    """Show the depth of every queue, live."""
    if once:
        talk.show(depths(talk))
        return 0
    return watch(talk, lambda: depths(talk), seconds=seconds(interval))


def glance(talk: Talk) -> dict[str, Any]:
    """Everything a screen shows, asked for at once: nobody waits for one answer after another."""
    session = talk.session
    asked: dict[str, Callable[[], Any]] = {
        "now": lambda: session.call(OFFERS["meta.time"])["now"],
        "queues": lambda: depths(talk),
        "workers": lambda: list(session.rows(OFFERS["workers.list"], most=WORKERS_MOST)),
        "upcoming": lambda: list(
            session.rows(OFFERS["upcoming.list"], query={"within": "PT1H"}, most=SOON_MOST)
        ),
    }
    found = dict(zip(asked, together(list(asked.values())), strict=True))
    found["running"] = under_way(talk, sum(one["running"] for one in found["queues"]))
    return found


def under_way(talk: Talk, most: int) -> list[dict[str, Any]]:
    """Some of what runs: nothing is looked for beyond as many as there are, nor for long."""
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"state": ["running"]}
    for _ in range(PAGES_MOST):
        query["limit"] = min(most, RUNS_MOST) - len(found)
        if query["limit"] <= 0:
            break
        page = talk.session.call(OFFERS["runs.list"], query=query)
        found += page["items"]
        query["cursor"] = page.get("next_cursor")
        if query["cursor"] is None:
            break
    return found


def depths(talk: Talk) -> list[dict[str, Any]]:
    """Every queue with what is in it, and how much was due in the last half hour."""
    names = queue_names(talk)[:QUEUES_MOST]
    return together([partial(depth, talk, name) for name in names])


def depth(talk: Talk, name: str) -> dict[str, Any]:
    """One queue."""
    path = {"queue": name}
    stats = talk.session.call(OFFERS["queues.stats"], path)
    series = talk.session.call(OFFERS["queues.series"], path, query={"metric": "due"})
    state = "paused" if stats["paused"] else "draining" if stats["draining"] else "ok"
    values = [point["value"] or 0.0 for point in series["points"]][-SERIES:]
    return {"name": name, **stats, "state": state, "recent": spark(values)}


def together(questions: Sequence[Callable[[], T]]) -> list[T]:
    """The answers to questions that do not depend on one another, some asked at a time."""
    if not questions:
        return []
    with ThreadPoolExecutor(min(len(questions), AT_ONCE)) as threads:
        return [one.result() for one in [threads.submit(question) for question in questions]]


def queue_names(talk: Talk) -> list[str]:
    """Queues that were set up, and those that were used within a day without it."""
    names = {one["name"] for one in talk.session.rows(OFFERS["queues.list"], most=QUEUES_MOST)}
    used = talk.session.call(OFFERS["usage.read"], query={"group_by": "queue"})["items"]
    return sorted(names | {one["group"] for one in used if one["group"]})


def screen(facts: Mapping[str, Any], eye: Eye, url: str) -> str:
    """One picture."""
    waiting = sum(one["waiting"] for one in facts["queues"])
    running = sum(one["running"] for one in facts["queues"])
    slots = sum(one["slots"] for one in facts["workers"])
    head = f"betimes {url}   {exact(eye.now, eye.zone)}"
    summary = f"{waiting:,} waiting   {running:,} running   {slots:,} slots"
    workers = [{**one, "load": f"{one['busy']}/{one['slots']}"} for one in facts["workers"]]
    parts = [f"{painted(head, BOLD, eye)}\n{painted(summary, DIM, eye)}\n"]
    for rows, columns, nothing in (
        (facts["queues"], QUEUE_COLUMNS, "no queues yet"),
        (workers, WORKER_COLUMNS, "no workers"),
        (facts["running"], RUN_COLUMNS, "nothing runs"),
        (facts["upcoming"], SOON_COLUMNS, "nothing is due within the hour"),
    ):
        picture = [column(one) for one in columns.split()]
        parts.append(table(rows, picture, eye) if rows else f"{painted(nothing, DIM, eye)}\n")
    return "\n".join(parts)
