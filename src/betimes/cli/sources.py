"""`betimes import rq|eventbridge`: more that can be taken over, read where it is."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.documents import documents_in
from betimes.cli.takeover import LOOK, loaded, take_over, takeover_options, zone_said
from betimes.domain.errors import Invalid
from betimes.importers.verdict import Verdict, inside, slug

SCHEDULED = "rq:scheduler:scheduled_jobs"
"""The sorted set of rq-scheduler."""


@service_command("rq", look=LOOK, example="betimes import rq redis://localhost:6379/0 --dry-run")
@click.argument("target", metavar="URL|MODULE:SCHEDULER")
@takeover_options
def rq(talk: Talk, *, target: str, queue: str | None, **manner: Any) -> int:
    """Take over what RQ and rq-scheduler hold back, in your own environment.

    A URL is a Redis: what rq-scheduler repeats there, and what RQ holds until its time. A cron
    scheduler of RQ is named by its module. Reading a job unpickles it, which runs code: do it where
    you trust it. --tz says the zone of the machine that rq-scheduler runs on.
    """
    from betimes.importers.rq import Where, read_rq  # noqa: PLC0415 -- one of many

    entries = list(_in_redis(target) if "://" in target else _held_by(loaded(target)))
    where = Where(
        now=machine.now(), timezone=zone_said(talk), queue=queue,
        local_next=_crontab_next(), utc_next=_croniter_next(),
    )  # fmt: skip
    return take_over(talk, read_rq(entries, where), f"rq-{slug(target)}", **manner)


def _in_redis(url: str) -> Iterator[Any]:
    """Every job that waits for its time."""
    redis, rq, registry = (_theirs(name) for name in ("redis", "rq", "rq.registry"))
    connection = redis.Redis.from_url(url)
    try:
        yield from _members(connection, SCHEDULED)
        for one in rq.Queue.all(connection):
            yield from _members(connection, registry.ScheduledJobRegistry(queue=one).key)
    except redis.RedisError as lost:
        raise Invalid(f"expected a Redis at {url.rpartition('@')[2]}, got: {lost}") from lost


def _theirs(name: str) -> Any:
    """A module of the user's own environment."""
    try:
        return import_module(name)
    except ImportError as missing:
        raise Invalid(f"expected RQ and redis here, got: {missing}") from missing


def _members(connection: Any, key: str) -> Iterator[Any]:
    from betimes.importers.rq import Gone, Held  # noqa: PLC0415 -- as above

    jobs, gone = _theirs("rq.job").Job, _theirs("rq.exceptions").NoSuchJobError
    for name, due in connection.zrange(key, 0, -1, withscores=True):
        job: Any
        try:
            job = jobs.fetch(name.decode(), connection=connection)
        except gone:
            job = Gone(name.decode())
        yield Held(job, datetime.fromtimestamp(due, UTC))


def _held_by(found: Any) -> Iterator[Any]:
    """The jobs of a scheduler of either kind, or of a list."""
    from betimes.importers.rq import Held  # noqa: PLC0415 -- as above

    if isinstance(found, list | tuple):
        yield from found
    elif hasattr(found, "scheduled_jobs_key"):
        for job, due in found.get_jobs(with_times=True):
            yield Held(job, due.replace(tzinfo=UTC))
    elif hasattr(found, "get_jobs"):
        yield from found.get_jobs()
    else:
        raise Invalid("expected a scheduler of rq-scheduler or RQ, or a list of its jobs")


def _crontab_next() -> Any:
    """What rq-scheduler asks, where it is installed."""
    try:
        crontab = import_module("crontab").CronTab
    except (ImportError, AttributeError):
        return None
    read = lru_cache(maxsize=1)(crontab)
    return lambda text, wall: read(text).next(now=wall, default_utc=True, return_datetime=True)


def _croniter_next() -> Any:
    """What RQ asks, where it is installed."""
    try:
        croniter = import_module("croniter").croniter
    except ImportError:
        return None
    return lambda text, wall: croniter(text, wall).get_next(datetime)


@service_command(
    "eventbridge", look=LOOK, example="betimes import eventbridge schedule.json --dry-run"
)
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--handler", default="message", show_default=True, help="Handler of what went to SQS."
)
@takeover_options
def eventbridge(
    talk: Talk, *, files: tuple[str, ...], handler: str, queue: str | None, **manner: Any
) -> int:
    """Take over schedules of Amazon EventBridge from files of JSON or YAML; - is standard input.

    Read are answers of `aws scheduler get-schedule`, of `aws events list-rules` (each with its
    `Targets`), and CloudFormation templates. Functions of Lambda become handlers of their names,
    queues of SQS become queues, https:// addresses are called. What is disabled is paused here.
    """
    from betimes.importers.amazon import Where, read_eventbridge  # noqa: PLC0415 -- one of many

    where = Where(now=machine.now(), handler=handler, queue=queue)
    verdicts: list[Verdict] = []
    for name, documents in documents_in(files, tags=True):
        if isinstance(documents, str):
            verdicts.append(Verdict(place=name, source="", reason=documents))
        else:
            verdicts += [inside(name, one) for one in read_eventbridge(documents, where)]
    return take_over(talk, verdicts, "eventbridge", **manner)
