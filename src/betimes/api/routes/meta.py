"""What the service says about itself."""

from betimes.api.call import Call, Reply
from betimes.api.codes import CODES
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Route
from betimes.api.version import API_VERSION
from betimes.domain.ids import to_text
from betimes.ops.cluster import DEGRADING, check_database, read_skews
from betimes.wire.base import shown_instant, shown_maybe
from betimes.wire.meta import Health, KeyShown, Ready, TenantShown, Time, Version, WhoAmI

NANOSECONDS = 1_000_000_000
HTML = "text/html; charset=utf-8"


async def healthz(_: Call[NoQuery, None]) -> Reply:
    """Alive: touches nothing."""
    return Reply(value=Health(status="ok"))


async def readyz(call: Call[NoQuery, None]) -> Reply:
    """Whether requests are welcome."""
    service = call.service
    checks = await check_database(service.desk)
    if service.draining.begun:
        checks["draining"] = "this node is about to stop"
    failed = {name for name, said in checks.items() if said != "ok"}
    # A node that works is not taken out, least of all every node at once: the balancer is told 200.
    ready = failed <= DEGRADING
    status = ("degraded" if failed else "ready") if ready else "not ready"
    return Reply(status=200 if ready else 503, value=Ready(status=status, checks=checks))


async def version(call: Call[NoQuery, None]) -> Reply:
    """Which release this is."""
    return Reply(
        value=Version(
            version=call.service.version,
            api_version=API_VERSION,
            commit=call.service.commit,
            features=sorted({route.tag for route in call.service.routes}),
        )
    )


async def time(call: Call[NoQuery, None]) -> Reply:
    """The time of the database, as this node estimates the skew of each."""
    now, skews = await read_skews(call.service.desk)
    return Reply(
        value=Time(
            now=shown_instant(now),
            monotonic_ns=str(int(call.service.clock.monotonic() * NANOSECONDS)),
            node_skew_ms=skews,
        )
    )


async def whoami(call: Call[NoQuery, None]) -> Reply:
    """Who asks, for whom, and how much they may."""
    caller = call.caller
    return Reply(
        value=WhoAmI(
            tenant=TenantShown(
                id=to_text("ten", caller.tenant), slug=caller.slug, timezone=caller.timezone
            ),
            key=KeyShown(
                id=caller.key,
                name=caller.name,
                kind=caller.kind,
                scopes=sorted(caller.scopes),
                queues=None if caller.queues is None else sorted(caller.queues),
                expires_at=shown_maybe(caller.expires_at),
            ),
            limits={**call.service.admission.rates(caller), **caller.quotas},
        )
    )


async def error_page(call: Call[NoQuery, None]) -> Reply:
    """What a code means, for people."""
    code = CODES.get(call.path["code"])
    if code is None:
        raise Trouble("not_found", "there is no such error code", resource_type="error")
    again = "The same request may succeed later." if code.retryable else "Change the request first."
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{code.title}</title>"
        f"<h1>{code.title}</h1><p><code>{code.code}</code>, HTTP {code.status}</p>"
        f"<p>{code.says.replace('<', '&lt;')}</p><p>{again}</p></html>"
    )
    return Reply(content=page.encode(), media=HTML)


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        name="meta.health",
        says="Whether the process is alive.",
        handler=healthz,
        scope=None,
        answers={200: Health},
        load=Load.FREE,
    ),
    Route(
        method="GET",
        path="/readyz",
        name="meta.ready",
        says="Whether requests are welcome.",
        handler=readyz,
        scope=None,
        answers={200: Ready, 503: Ready},
        load=Load.FREE,
        seconds=2.0,
    ),
    Route(
        method="GET",
        path="/v1/version",
        name="meta.version",
        says="Which release this is.",
        handler=version,
        scope=None,
        answers={200: Version},
        load=Load.FREE,
    ),
    Route(
        method="GET",
        path="/v1/time",
        name="meta.time",
        says="The time of the database, and how far nodes are from it.",
        handler=time,
        scope=None,
        answers={200: Time},
    ),
    Route(
        method="GET",
        path="/v1/errors/{code}",
        name="meta.error",
        says="What an error code means, as a page.",
        handler=error_page,
        scope=None,
        answers={200: str},
        answer_media=HTML,
        problems=("not_found",),
        load=Load.FREE,
    ),
    Route(
        method="GET",
        path="/v1/whoami",
        name="meta.whoami",
        says="Who asks, for whom, and how much they may.",
        handler=whoami,
        scope="",
        answers={200: WhoAmI},
    ),
)
