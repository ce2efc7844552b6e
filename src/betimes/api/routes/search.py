"""One field to look for anything: ids, names, tags, errors."""

from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.route import Load, Route
from betimes.api.shaping import coerced
from betimes.domain.errors import NotFound, Refused
from betimes.domain.ids import JobId, RunId, from_text, shard_of, to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.ops.letters import LetterFilter, list_dead_letters
from betimes.ops.listing import JobFilter, find_jobs
from betimes.ops.read import get_job
from betimes.ops.runs import get_run
from betimes.wire import queues as wire

ENOUGH = 20
TAG_SEPARATOR = ":"


async def search(call: Call[wire.Search, None]) -> Reply:
    """A job or a run by its id; else jobs by name and tag, then dead runs by error and tag."""
    text = call.query.q.strip()
    found = await _by_id(call, text)
    if found is None:
        most = min(coerced(call.query.limit), ENOUGH)
        found = await _jobs(call, text, most)
        if len(found) < most and Scope.RUNS_READ in call.caller.scopes:
            found += await _letters(call, text, most - len(found))
    return Reply(value=wire.FoundList(items=found))


async def _by_id(call: Call[Any, Any], text: str) -> list[wire.Found] | None:
    desk = call.service.desk
    try:
        if text.startswith("job_"):
            identity = from_text("job", text)
            if shard_of(identity) < desk.shards:
                return [_found(await get_job(desk, call.tenant, JobId(identity)))]
        if text.startswith("run_"):
            identity = from_text("run", text)
            if shard_of(identity) < desk.shards:
                view = await get_run(desk, call.tenant, RunId(identity))
                return [wire.Found(kind="run", id=text, name=None, state=view.state.value)]
    except NotFound:
        return []
    except Refused:
        return None
    return None


async def _jobs(call: Call[Any, Any], text: str, most: int) -> list[wire.Found]:
    jobs: list[Job] = []
    for chosen in (JobFilter(text=text), JobFilter(tags=_tag(text))):
        if chosen.text or chosen.tags:
            jobs += await find_jobs(
                call.service.desk, call.tenant, chosen, after=None, newest_first=True, limit=most
            )
    # What begins with the text is what most people mean.
    jobs.sort(key=lambda job: not (job.name or "").startswith(text))
    return [_found(job) for job in jobs[:most]]


async def _letters(call: Call[Any, Any], text: str, most: int) -> list[wire.Found]:
    chosen = LetterFilter(text=text)
    if (tags := _tag(text)) is not None:
        chosen = LetterFilter(tags=tags)
    page = await list_dead_letters(call.service.desk, call.tenant, chosen, limit=most)
    return [
        wire.Found(kind="run", id=to_text("run", one.run), name=one.handler, state="dead")
        for one in page.letters
    ]


def _tag(text: str) -> dict[str, str] | None:
    """`name:value` as a tag."""
    name, separator, value = text.partition(TAG_SEPARATOR)
    return {name: value} if separator and name else None


def _found(job: Job) -> wire.Found:
    return wire.Found(
        kind="job", id=to_text("job", job.id), name=job.name, state=job.state.name.lower()
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/search",
        name="search.find",
        says="A job or a run by its id, jobs by name or tag, dead runs by error or tag.",
        handler=search,
        scope=Scope.JOBS_READ,
        query=wire.Search,
        load=Load.AGGREGATE,
        answers={200: wire.FoundList},
    ),
)
