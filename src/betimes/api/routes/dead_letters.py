"""Dead letters: looking at them, giving them another life, closing them."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.context import check_again
from betimes.api.finding import job_of
from betimes.api.operating import begin, check_count, chosen_id
from betimes.api.paging import scope_of
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs_control import told_run
from betimes.api.routes.jobs_list import read_tags
from betimes.api.run_shapes import shown_attempt, shown_failure
from betimes.api.searching import search_into
from betimes.api.shaping import (
    coerced,
    maybe_instant,
    maybe_span,
    missing,
    page,
    paged,
    read_id,
    read_instant,
)
from betimes.api.targets import redaction_of
from betimes.domain.errors import NotFound
from betimes.domain.ids import RunId, from_text, shard_of, to_text
from betimes.domain.scopes import Scope
from betimes.ops import letters as ops
from betimes.ops.acting import Told
from betimes.ops.bulk import ITEMS_MAX
from betimes.ops.bulk_runs import BULK_LETTERS, LETTERS
from betimes.ops.desk import Desk
from betimes.ops.operations import new_operation
from betimes.ops.runs import get_run
from betimes.wire import more as wire
from betimes.wire import operations
from betimes.wire.base import Page, shown_instant, shown_maybe
from betimes.wire.runs import RunMade

SEARCHED = {
    "queue": "queue",
    "handler": "handler",
    "job": "job",
    "group": "group",
    "since": "finished_after",
    "until": "finished_before",
    "error": "error",
}


def shown_letter(letter: ops.DeadLetter) -> wire.DeadLetter:
    """A dead letter as it is shown; its id is its run's."""
    run = to_text("run", letter.run)
    return wire.DeadLetter(
        id=run,
        run_id=run,
        state=letter.state.name.lower(),
        queue=letter.queue,
        attempts=letter.attempts,
        fingerprint=letter.fingerprint,
        reason=letter.reason,
        dead_at=shown_instant(letter.dead_at),
        job_id=None if letter.job is None else to_text("job", letter.job),
        handler=letter.handler,
        error=shown_failure(letter.error),
        note=letter.note,
        assignee=letter.assignee,
        resolved_at=shown_maybe(letter.resolved_at),
    )


async def list_all(call: Call[wire.ListLetters, None]) -> Reply:
    """A page of dead letters, oldest death first."""
    query = call.query
    scope = scope_of("letters", call.tenant, query)
    chosen = await _filter(call, query, state=query.state)
    after = ops.BEGINNING
    if query.cursor is not None:
        at, run = call.leaves.read(scope, query.cursor)
        after = (read_instant(at, pointer="/cursor"), from_text("run", run))
    found = await ops.list_dead_letters(
        call.service.desk, call.tenant, chosen, after=after, limit=coerced(query.limit)
    )
    cursor = None
    if found.next is not None:
        place = [shown_instant(found.next[0]), to_text("run", found.next[1])]
        cursor = call.leaves.write(scope, place)
    items = [shown_letter(one) for one in found.letters]
    total = None
    if query.count is not None:
        whole = cursor is None and query.cursor is None
        guess = 0 if whole else await ops.estimate_letters(call.service.desk, call.tenant, chosen)
        total = max(len(items), guess)
    return paged(call, page(items, cursor=cursor, estimate=total))


async def _filter(
    call: Call[Any, Any],
    said: wire.ListLetters | wire.LetterChoice,
    *,
    state: str = "open",
    within: str = "",
) -> ops.LetterFilter:
    """What was said, member by member and in the line `q`."""
    text = search_into(said, said.q, SEARCHED, call.service.now())
    if said.fingerprint is not None and said.group is not None:
        raise Trouble("invalid_parameter", "expected `fingerprint` or `group`, got both")
    if said.error is not None and text is not None:
        raise Trouble("invalid_parameter", f"expected one text in the error, got {text!r} as well")
    return ops.LetterFilter(
        fingerprint=said.fingerprint or said.group,
        queue=said.queue,
        handler=said.handler,
        job=None if said.job is None else await job_of(call, said.job),
        state=ops.LetterState[state.upper()],
        text=said.error or text,
        tags=read_tags(said.tag),
        finished_after=maybe_instant(said.finished_after, pointer=f"{within}/finished_after"),
        finished_before=maybe_instant(said.finished_before, pointer=f"{within}/finished_before"),
    )


async def groups(call: Call[NoQuery, None]) -> Reply:
    """Open dead letters by what they died of."""
    found = await ops.list_dead_groups(call.service.desk, call.tenant)
    items = [
        wire.LetterGroup(
            fingerprint=group.fingerprint,
            handler=group.handler,
            count=group.count,
            first_at=shown_instant(group.first_at),
            last_at=shown_instant(group.last_at),
            sample=shown_failure(group.sample),
        )
        for group in found
    ]
    return Reply(value=wire.LetterGroups(items=items))


def _run(call: Call[Any, Any]) -> RunId:
    return RunId(read_id(call.service.desk, "run", call.path["letter"], "dead letter"))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One dead letter with its attempts."""
    try:
        letter, attempts = await ops.get_dead_letter(call.service.desk, call.tenant, _run(call))
    except NotFound:
        raise missing("dead letter", call.path["letter"]) from None
    shown = shown_letter(letter)
    hidden = redaction_of(call)
    shown.history = [shown_attempt(one, hidden) for one in attempts]
    return Reply(value=shown)


async def annotate(call: Call[NoQuery, wire.AnnotateLetter]) -> Reply:
    """Write a note, or give the letter to somebody."""
    run = _run(call)

    async def verb(desk: Desk) -> ops.DeadLetter:
        try:
            return await ops.annotate_dead_letter(
                desk, call.tenant, run, note=call.body.note, assignee=call.body.assignee
            )
        except NotFound:
            raise missing("dead letter", call.path["letter"]) from None

    return await perform(call, verb, lambda letter: _told(run, shown_letter(letter)))


def _told(run: RunId, shown: Any) -> Told:
    return Told(answer=answer(200, shown), resource=to_text("run", run), shard=shard_of(run))


async def redrive(call: Call[NoQuery, wire.Redrive]) -> Reply:
    """Give a dead run another life."""
    run, body = _run(call), call.body
    delay = maybe_span(body.delay, pointer="/delay")
    payload = None
    if body.payload_override is not msgspec.UNSET:
        payload = msgspec.json.encode(body.payload_override)
    with suppress(NotFound):  # then there is no letter either, as the verb will say
        found = (await get_run(call.service.desk, call.tenant, run)).run
        await check_again(call, found, payload)

    async def verb(desk: Desk) -> RunId:
        try:
            return await ops.redrive_one(
                desk,
                call.tenant,
                run,
                reset_attempts=body.reset_attempts,
                queue=body.queue,
                payload=payload,
                delay=delay or timedelta(0),
            )
        except NotFound:
            raise missing("dead letter", call.path["letter"]) from None

    return await perform(call, verb, told_run)


async def discard(call: Call[NoQuery, wire.Discard]) -> Reply:
    """Close a letter for good; the run stays dead."""
    run = _run(call)

    async def verb(desk: Desk) -> ops.DeadLetter:
        await ops.discard(desk, call.tenant, [run], reason=call.body.reason)
        try:
            letter, _ = await ops.get_dead_letter(desk, call.tenant, run)
        except NotFound:
            raise missing("dead letter", call.path["letter"]) from None
        return letter

    return await perform(call, verb, lambda letter: _told(run, shown_letter(letter)))


async def bulk(call: Call[NoQuery, wire.BulkLetters]) -> Reply:
    """Redrive or discard what a filter means, when its number is confirmed."""
    body = call.body
    chosen = await _filter(call, body.filter, within="/filter")
    letters = await ops.find_letters(call.service.desk, call.tenant, chosen, most=ITEMS_MAX + 1)
    if len(letters) > ITEMS_MAX:
        raise Trouble("batch_too_large", f"this means more than {ITEMS_MAX} letters")
    if body.dry_run:
        return Reply(value=operations.Matched(matched=len(letters), dry_run=True))
    check_count(len(letters), body.confirm_count, noun="dead letters")
    request = BULK_LETTERS.request(
        body.action,
        letters,
        reason=body.reason,
        rate_per_second=body.rate_per_second,
        reset_attempts=body.reset_attempts,
    )
    operation = new_operation(
        call.service.desk,
        call.tenant,
        LETTERS,
        request,
        total=len(letters),
        by=call.caller.key,
        identity=chosen_id(call, body.operation_id),
    )
    return await begin(call, operation)


def _route(method: str, path: str, name: str, says: str, handler: Any, **more: Any) -> Route:
    given: dict[str, Any] = {
        "scope": Scope.RUNS_READ if method == "GET" else Scope.RUNS_WRITE,
        "load": Load.READ if method == "GET" else Load.WRITE,
        **more,
    }
    return Route(
        method=method,
        path=f"/v1/dead-letters{path}",
        name=f"dead_letters.{name}",
        says=says,
        handler=handler,
        **given,
    )


ROUTES = (
    _route(
        "GET",
        "",
        "list",
        "List dead letters, oldest death first.",
        list_all,
        query=wire.ListLetters,
        answers={200: Page[wire.DeadLetter]},
        problems=("cursor_invalid",),
    ),
    _route(
        "GET",
        "/groups",
        "groups",
        "Open dead letters by what they died of.",
        groups,
        answers={200: wire.LetterGroups},
        load=Load.AGGREGATE,
    ),
    _route(
        "POST",
        "/bulk",
        "bulk",
        "Redrive or discard what a filter means, as an operation.",
        bulk,
        body=wire.BulkLetters,
        answers={200: operations.Matched, 202: operations.Operation},
        keyed=Keyed.OPTIONAL,
        policy=Policy.BULK,
        headers=("Location",),
        problems=("confirm_count_mismatch", "batch_too_large", "already_exists"),
    ),
    _route(
        "GET",
        "/{letter}",
        "get",
        "Read one dead letter with its attempts.",
        read,
        answers={200: wire.DeadLetter},
    ),
    _route(
        "PATCH",
        "/{letter}",
        "update",
        "Write a note, or give the letter to somebody.",
        annotate,
        body=wire.AnnotateLetter,
        answers={200: wire.DeadLetter},
        keyed=Keyed.OPTIONAL,
    ),
    _route(
        "POST",
        "/{letter}/redrive",
        "redrive",
        "Give a dead run another life.",
        redrive,
        body=wire.Redrive,
        body_optional=True,
        answers={202: RunMade},
        keyed=Keyed.REQUIRED,
        problems=("invalid_state", "invalid_payload"),
    ),
    _route(
        "POST",
        "/{letter}/discard",
        "discard",
        "Close a letter for good.",
        discard,
        body=wire.Discard,
        body_optional=True,
        answers={200: wire.DeadLetter},
        keyed=Keyed.OPTIONAL,
    ),
)
