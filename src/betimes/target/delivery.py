"""The delivery of a run to its HTTP target, from the stored description to an outcome.

prepare    the description is read and checked once for each definition
admit      the origin's gate lets it through, or says when to come back
send       under the guard; redirects are requests of their own, checked like the first
judge      the table of `classify`; every result leaves evidence

Long because all four steps share what is known of one request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Protocol
from uuid import UUID

from betimes.domain import webhook
from betimes.domain.clock import Clock
from betimes.domain.errors import LeaseOver, Refused
from betimes.domain.kept import Kept
from betimes.domain.outcome import (
    Cancelled,
    ErrorFacts,
    Failed,
    Outcome,
    Snoozed,
    Succeeded,
)
from betimes.target.answer import Answer, NoAnswer, Patience, Request, Trouble
from betimes.target.auth import NoSecret
from betimes.target.classify import PUSHED_BACK, SERVER_ERRORS, Verdict, classify, retry_after
from betimes.target.definition import HttpTarget, read_target
from betimes.target.evidence import evidence_of
from betimes.target.gate import Health, Hold
from betimes.target.gates import Gates
from betimes.target.headers import Facts, our_headers
from betimes.target.own_token import LEASE_LINE, veil_for
from betimes.target.presented import Presented, Presenter
from betimes.target.redirect import REDIRECTS, Sends, Way, complaint_of, follow, send_in_time
from betimes.target.url import UrlPolicy

PREPARED_BYTES_MAX = 16 << 20
PREPARED_BYTES = 4_000
"""What a target weighs besides its body."""
TENANTS_MAX = 10_000
UNAUTHORIZED = 401
GO_ON = REDIRECTS | {UNAUTHORIZED}
"""Answers after which there may be another request of the same attempt."""
ASYNC = "betimes-async"
WAIT_MAX = timedelta(hours=1)
"""How long a target that answered `202` may take to report when the job has no timeout."""
NOTICE = timedelta(milliseconds=50)
UNREPORTED = "TargetUnreported"
STAY_TIMEOUT_MIN = timedelta(seconds=30)
"""An attempt with less time than this waits for its turn in the queue, where no time is counted."""
PAST_BUDGET = frozenset({Hold.RETRY_BUDGET, Hold.ORIGIN_RATE, Hold.ORIGIN_BUSY})
"""Who waited for one of these has waited for the retry budget, or was let through by it."""
PERMANENT = frozenset({Trouble.REFUSED, Trouble.REDIRECT})
UNASKED = PERMANENT | {Trouble.UNSENT}
"""What says nothing about an origin: nobody was asked."""
PLAIN = Presented()
UNTAMED = "Expect:"
"""libcurl would ask before it sends a large body, and wait for an answer few servers give."""


class Errand(Protocol):
    """An attempt of a run, as a worker tells it."""

    started_at: datetime
    cancelled: bool

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def job_id(self) -> str | None: ...  # noqa: D102
    @property
    def tenant_id(self) -> str: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def traceparent(self) -> str: ...  # noqa: D102
    @property
    def tracestate(self) -> str | None: ...  # noqa: D102
    @property
    def fence(self) -> int: ...  # noqa: D102
    @property
    def waited_for(self) -> str | None: ...  # noqa: D102
    @property
    def fire_at(self) -> datetime | None: ...  # noqa: D102
    @property
    def due_at(self) -> datetime: ...  # noqa: D102
    @property
    def deadline(self) -> datetime | None: ...  # noqa: D102
    @property
    def payload(self) -> bytes | None: ...  # noqa: D102
    @property
    def target(self) -> Mapping[str, Any]: ...  # noqa: D102
    def is_held(self) -> bool: ...  # noqa: D102
    async def wait_cancelled(self) -> None: ...  # noqa: D102
    def park(self) -> bool: ...  # noqa: D102
    def snooze(self, pause: timedelta) -> Snoozed: ...  # noqa: D102


Policies = Callable[[UUID], Awaitable[UrlPolicy]]
"""The rules for a tenant."""
Secrets = Callable[[UUID], Sequence[bytes]]
"""The signing secrets of a tenant, newest first; none means unsigned."""
LeaseToken = Callable[[Any], str]
"""What a target needs to report the end of an attempt itself."""
Pause = Callable[[str, str, str], Awaitable[None]]
"""Pause a job of a tenant, with a reason."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    stored: Mapping[str, Any]
    policy: UrlPolicy
    target: HttpTarget
    origin: str
    patience: Patience


class Delivery:
    """Delivers runs whose target is HTTP. `deliver` is the handler of that name."""

    def __init__(
        self,
        *,
        client: Sends,
        clock: Clock,
        policies: Policies,
        patience: Patience,
        gates: Gates,
        secrets: Secrets = lambda _: (),
        presenter: Presenter | None = None,
        lease_token: LeaseToken | None = None,
        pause: Pause | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._policies = policies
        self._patience = patience
        self._gates = gates
        self._secrets = secrets
        self._presenter = presenter
        self._lease_token = lease_token
        self._pause = pause
        self._prepared: Kept[tuple[UUID, int], _Prepared] = Kept(PREPARED_BYTES_MAX)

    async def deliver(self, errand: Errand) -> Outcome:
        """One attempt."""
        began = self._clock.monotonic()
        tenant = _uuid(errand.tenant_id)
        try:
            prepared = await self._prepare(tenant, errand.target)
        except Refused as refused:
            return Failed(ErrorFacts(Trouble.REFUSED.value, refused.sentence), retryable=False)
        try:
            presented = await self._present(tenant, prepared)
        except NoSecret as missing:
            return Failed(ErrorFacts(missing.kind, missing.sentence), retryable=missing.retryable)
        origin = prepared.origin
        held = await self._gates.ask(
            tenant,
            origin,
            retry=errand.attempt > 1,
            waited=errand.waited_for in PAST_BUDGET,
            stay=partial(self._stay, errand),
        )
        if held is not None:
            snoozed = errand.snooze(timedelta(seconds=held.seconds))
            waits_for = origin if held.waits_for_breaker else None
            return replace(snoozed, reason=held.why.value, origin=waits_for)
        request, way = self._request(tenant, prepared, presented, errand), None
        try:
            result = await self._client.send(request)
            if isinstance(result, Answer) and result.status in GO_ON:
                way = self._way(request, result, presented, prepared, errand)
                result, presented = await self._go_on(result, way, prepared, presented)
        except BaseException:
            self._gates.dropped(tenant, origin)
            raise
        self._tell(tenant, origin, result)
        if isinstance(result, NoAnswer) and result.trouble is Trouble.UNSENT:
            raise LeaseOver(result.detail)
        last_url = None if way is None else way.request.url.text
        evidence = evidence_of(
            result,
            url=prepared.target.url.text,
            last_url=last_url,
            redaction=prepared.target.redaction,
            veil=veil_for(presented.veil, request, result, last_url),
        )
        return await self._judge(result, evidence, prepared, errand, began)

    async def _stay(self, errand: Errand) -> bool:
        """Whether an attempt may wait in line: without its place, and not from its own time."""
        if errand.deadline is not None and errand.deadline - errand.started_at < STAY_TIMEOUT_MIN:
            return False
        await self._clock.sleep(0)  # only what has waited once has a place to give back
        return errand.park()

    async def _present(self, tenant: UUID, prepared: _Prepared) -> Presented:
        target = prepared.target
        if not target.secrets:
            return PLAIN
        if self._presenter is None:
            raise NoSecret("SecretUnavailable", "this worker cannot open secrets")
        return await self._presenter.present(tenant, target, prepared.policy)

    def _way(
        self,
        request: Request,
        result: Answer,
        presented: Presented,
        prepared: _Prepared,
        errand: Errand,
    ) -> Way:
        """From a first answer on; the time it took is gone from that of the attempt."""

        def sign(origin: str) -> list[str]:
            facts = _facts(errand)
            # A secret that somebody named signs for the origin they named it for.
            foreign = presented.signing is not None and origin != prepared.origin
            mine = None if foreign else self._signature(request.tenant, presented, facts, None)
            return our_headers(facts, mine)

        return Way(
            request=request,
            sign=sign,
            until=self._clock.monotonic() + request.patience.total - result.timings.total / 1000,
            redirects=prepared.target.redirects,
            policy=prepared.policy,
        )

    async def _go_on(
        self, result: Answer, way: Way, prepared: _Prepared, presented: Presented
    ) -> tuple[Answer | NoAnswer, Presented]:
        """After a redirect where it leads, and once more with a fresh token after a refusal."""
        first = way.request
        last = await follow(self._client, self._clock, way, result)
        if not presented.token or not isinstance(last, Answer) or last.status != UNAUTHORIZED:
            return last, presented
        fresh = await self._fresh(first, prepared, presented)
        if fresh is None:
            return last, presented
        old = set(presented.headers)
        headers = [line for line in first.headers if line not in old]
        way.request = replace(first, headers=[*headers, *fresh.headers])
        again = await send_in_time(self._client, self._clock, way)
        return await follow(self._client, self._clock, way, again), fresh

    async def _fresh(
        self, request: Request, prepared: _Prepared, presented: Presented
    ) -> Presented | None:
        """Another token, if there is one: the one we had may have been withdrawn."""
        if self._presenter is None:
            return None
        self._presenter.refused(request.tenant, prepared.target, presented)
        try:
            fresh = await self._present(request.tenant, prepared)
        except NoSecret:
            return None
        return None if fresh.token == presented.token else fresh

    def _tell(self, tenant: UUID, origin: str, result: Answer | NoAnswer) -> None:
        if (health := health_of(result)) is None:
            self._gates.dropped(tenant, origin)
            return
        pause = None
        if isinstance(result, Answer):
            pause = retry_after(result.header("retry-after"), self._clock.now())
        self._gates.done(
            tenant,
            origin,
            health,
            seconds=result.timings.total / 1000,
            pause=None if pause is None else pause.total_seconds(),
        )

    async def _prepare(self, tenant: UUID, stored: Mapping[str, Any]) -> _Prepared:
        policy = await self._policies(tenant)
        # A definition is one object for all its runs, and never changes.
        key = tenant, id(stored)
        found = self._prepared.get(key)
        if found is None or found.stored is not stored or found.policy is not policy:
            target = read_target(stored, policy)
            patience = replace(self._patience, total=target.timeout.total_seconds())
            found = _Prepared(stored, policy, target, target.url.origin, patience)
            self._prepared.put(key, found, PREPARED_BYTES + len(target.body or b""))
        return found

    def _request(
        self, tenant: UUID, prepared: _Prepared, presented: Presented, errand: Errand
    ) -> Request:
        target = prepared.target
        body = target.body
        if target.sends_payload:
            body = errand.payload or b""
        facts = _facts(errand)
        headers = [
            *target.headers,
            *presented.headers,
            *our_headers(facts, self._signature(tenant, presented, facts, body)),
            UNTAMED,
        ]
        if self._lease_token is not None:
            headers.append(f"{LEASE_LINE}{self._lease_token(errand)}")
        return Request(
            tenant=tenant,
            url=target.url,
            method=target.method,
            headers=headers,
            body=body,
            patience=_patience_of(prepared.patience, errand),
            addresses=prepared.policy.addresses,
            tls=presented.tls or target.tls,
            private=target.private,
            may_go=errand.is_held,
        )

    def _signature(
        self, tenant: UUID, presented: Presented, facts: Facts, body: bytes | None
    ) -> tuple[int, str] | None:
        secrets = self._secrets(tenant) if presented.signing is None else presented.signing
        if not secrets:
            return None
        timestamp = int(self._clock.now().timestamp())
        return timestamp, webhook.sign(secrets, facts.run_id, timestamp, body or b"")

    async def _judge(
        self,
        result: Answer | NoAnswer,
        evidence: bytes,
        prepared: _Prepared,
        errand: Errand,
        began: float,
    ) -> Outcome:
        target, origin = prepared.target, prepared.origin
        if isinstance(result, NoAnswer):
            facts = ErrorFacts(result.trouble.value, f"{origin}: {result.detail}")
            return Failed(
                facts,
                retryable=result.trouble not in PERMANENT,
                http=evidence.decode(),
                timed_out=result.trouble is Trouble.TIMEOUT,
            )
        is_async = (result.header(ASYNC) or "").lower() == "true"
        verdict = classify(result.status, is_async=is_async, success_codes=target.success_codes)
        if verdict is Verdict.SUCCESS:
            return Succeeded(evidence)
        if verdict is Verdict.WAIT:
            return await self._wait(errand, evidence, began)
        if verdict is Verdict.GONE:
            await self._auto_pause(errand)
        return Failed(
            ErrorFacts(
                f"Http{result.status}", complaint_of(origin, result.status, target.redirects)
            ),
            retryable=verdict is Verdict.RETRY,
            after=retry_after(result.header("retry-after"), self._clock.now()),
            http=evidence.decode(),
        )

    async def _wait(self, errand: Errand, evidence: bytes, began: float) -> Outcome:
        """Until the target has reported, which ends the run, or somebody cancels, or time is up."""
        errand.park()
        limit = WAIT_MAX
        if errand.deadline is not None:
            # A little before whoever keeps the time of the attempt: we know what it waited for.
            gone = timedelta(seconds=self._clock.monotonic() - began)
            limit = min(limit, errand.deadline - errand.started_at - gone - NOTICE)
        try:
            async with asyncio.timeout(max(0.0, limit.total_seconds())):
                await errand.wait_cancelled()
        except TimeoutError:
            detail = "the target accepted it with 202 and has not reported its end in time"
            return Failed(ErrorFacts(UNREPORTED, detail), http=evidence.decode(), timed_out=True)
        return Cancelled()

    async def _auto_pause(self, errand: Errand) -> None:
        if self._pause is not None and errand.job_id is not None:
            await self._pause(errand.tenant_id, errand.job_id, "the target answered 410 Gone")


def _facts(errand: Errand) -> Facts:
    return Facts(
        run_id=errand.run_id,
        attempt=errand.attempt,
        fence=errand.fence,
        scheduled_for=errand.fire_at or errand.due_at,
        traceparent=errand.traceparent,
        tracestate=errand.tracestate,
    )


def health_of(result: Answer | NoAnswer) -> Health | None:
    """What a result says about its origin; None when it says nothing, because nobody was asked."""
    if isinstance(result, NoAnswer):
        return None if result.trouble in UNASKED else Health.BAD
    if result.status in SERVER_ERRORS:
        return Health.BAD
    return Health.PUSHED_BACK if result.status in PUSHED_BACK else Health.GOOD


def _patience_of(patience: Patience, errand: Errand) -> Patience:
    """The attempt ends with the job's own limit; what came until then is worth keeping."""
    if errand.deadline is None:
        return patience
    left = (errand.deadline - errand.started_at).total_seconds()
    return replace(patience, total=min(patience.total, left))


@lru_cache(maxsize=TENANTS_MAX)
def _uuid(text: str) -> UUID:
    return UUID(text)
