"""Runs by one plain request: the body is the payload, headers say the rest."""

from dataclasses import replace
from typing import Any

from betimes.api.acting import intent_of, replied
from betimes.api.admitting import admitted, check_open
from betimes.api.call import Call, Reply
from betimes.api.context import targets_of
from betimes.api.problem import Trouble
from betimes.api.reading import convert, single
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs import WRITE_PROBLEMS
from betimes.api.run_shapes import new_run
from betimes.api.targets import Rules
from betimes.api.told_runs import told_enqueued
from betimes.domain.run import NewRun
from betimes.domain.scopes import Scope
from betimes.ops.checks import PAYLOAD_BYTES_MAX
from betimes.ops.contents import check_unmarked
from betimes.ops.desk import Desk
from betimes.ops.idempotency import shard_of_idempotency
from betimes.ops.making import Enqueued, make_runs
from betimes.wire import runs as wire
from betimes.wire.problem import FieldError

PREFIX = b"betimes-"
NUMBERS = {"betimes-priority": "priority", "betimes-retries": "retries"}
TEXTS = {
    "betimes-delay": "delay",
    "betimes-at": "at",
    "betimes-queue": "queue",
    "betimes-dedupe-key": "dedupe_key",
    "betimes-callback": "callback",
}
ELSEWHERE = frozenset({b"betimes-tenant", b"betimes-csrf"})
KNOWN = frozenset({*NUMBERS, *TEXTS})


async def enqueue(call: Call[NoQuery, bytes]) -> Reply:
    """Enqueue the body as the payload of one run."""
    new = _run(call)
    accepted = await call.service.schemas.of(call.service.desk, call.tenant)
    accepted.check(new.handler, new.payload)

    async def verb(desk: Desk) -> Enqueued:
        key = call.key.key if call.key else call.request.id
        shard = shard_of_idempotency(desk, call.tenant, key)
        return (await make_runs(desk, call.tenant, [new], shard))[0]

    if told := await admitted(call, runs=[new]):
        return told
    await check_open(call, [new.queue], [new.handler])
    now = call.service.now()
    return replied(
        await call.service.runs.act(
            new, intent_of(call), verb, lambda made: told_enqueued(made, new, now)
        )
    )


def _run(call: Call[NoQuery, bytes]) -> NewRun:
    asked: dict[str, Any] = {"handler": call.path["handler"]}
    for name in sorted(call.request.headers):
        if not name.startswith(PREFIX) or name in ELSEWHERE:
            continue
        text = name.decode()
        value = single(call.request.headers, call.request.doubled, name) or ""
        if text not in KNOWN:
            raise _wrong(text, f"expected {', '.join(sorted(KNOWN))}, got {text[:100]!r}")
        asked[NUMBERS.get(text) or TEXTS[text]] = _number(text, value) if text in NUMBERS else value
    if "retries" in asked:
        asked["retry"] = {"max_attempts": asked.pop("retries") + 1}
    if "callback" in asked:
        asked["notify"] = [{"url": asked.pop("callback")}]
    shaped: wire.NewRun = convert(asked, wire.NewRun)
    check_unmarked(call.body)
    return replace(new_run(shaped, Rules(policy=targets_of(call))), payload=call.body or None)


def _number(header: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 4:  # noqa: PLR2004 -- far beyond every range
        raise _wrong(header, f"expected a whole number in {header}, got {value[:20]!r}")
    return int(value)


def _wrong(header: str, sentence: str) -> Trouble:
    error = FieldError(pointer=f"/headers/{header}", code="invalid_parameter", detail=sentence)
    return Trouble("invalid_parameter", sentence, errors=[error])


ROUTES = (
    Route(
        method="POST",
        path="/v1/enqueue/{handler}",
        name="runs.enqueue_body",
        says="Enqueue a run whose payload is the body; delay, queue and priority are headers.",
        handler=enqueue,
        scope=Scope.RUNS_WRITE,
        body=bytes,
        body_optional=True,
        media="*/*",
        body_max=PAYLOAD_BYTES_MAX,
        answers={202: wire.RunMade, 200: wire.Run},
        keyed=Keyed.OPTIONAL,
        load=Load.CREATE,
        policy=Policy.CREATE,
        problems=WRITE_PROBLEMS,
        sends={
            "Betimes-Delay": "How long to wait first, such as PT5M.",
            "Betimes-At": "When it is due, as RFC 3339.",
            "Betimes-Queue": "The queue; `default` without it.",
            "Betimes-Priority": "0 to 9; 9 is the most urgent.",
            "Betimes-Dedupe-Key": "While a run with this key is active, this is that run.",
            "Betimes-Retries": "Attempts after the first.",
            "Betimes-Callback": "A URL that is told how the run ended.",
        },
    ),
)
