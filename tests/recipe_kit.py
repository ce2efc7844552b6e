"""A request that succeeds for every operation of the document, with fresh things to try it on.

A route without a recipe fails the matrices: whoever adds one says here how it is called.

Long because it is a table with a line for every operation.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from api_kit import Answer, Client
from betimes.api.route import Route
from betimes.domain.ids import WorkerId, from_text
from betimes.store.breakers import BreakerRow, Breakers
from world_kit import PLACES, Make, World, fresh

SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"}


@dataclass(slots=True)
class Wanted:
    """A request on its way."""

    method: str
    path: str
    body: Any = None
    raw: bytes | None = None
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    key: str | None = ""
    """None to send none."""

    async def send(self, client: Client, **more: Any) -> Answer:
        """It, with other headers or another body if need be."""
        path = f"{self.path}?{self.query}" if self.query else self.path
        headers = {**self.headers, **more.pop("headers", {})}
        given = {"body": self.body, "raw": self.raw, **more}
        if self.key is None:
            client = replace(client, key=None)
        return await client(self.method, path, headers=headers, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one operation is called so that it succeeds, or answers a certain status."""

    body: Any = None
    """JSON, or a function of the world that makes it."""
    raw: bytes | None = None
    query: str | Make = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Make] = field(default_factory=dict)
    """Who makes what stands in the path, where the usual maker does not fit."""
    before: Make | None = None
    """What has to happen first."""
    visit: bool = False
    """Whether a browser asks, with a session instead of a key."""

    async def wanted(self, world: World, route: Route) -> Wanted:
        """The request, on fresh things."""
        path = route.path
        for name in route.parameters:
            make = self.places.get(name) or PLACES[name]
            path = path.replace(f"{{{name}}}", str(await make(world)))
        if self.before is not None:
            await self.before(world)
        body = await self.body(world) if callable(self.body) else self.body
        query = self.query if isinstance(self.query, str) else str(await self.query(world))
        wanted = Wanted(route.method, path, body, self.raw, query, dict(self.headers))
        if self.visit:
            wanted.headers |= await _session(world)
            wanted.key = None
        return wanted


def _of(make: Callable[[World], Any]) -> Callable[[World], Awaitable[Any]]:
    """A body that is made without asking anybody."""

    async def body(world: World) -> Any:
        return make(world)

    return body


async def _device_code(world: World) -> Any:
    asked = await world.made("POST", "/v1/auth/device", {"name": world.word})
    answered = {"user_code": asked["user_code"], "approve": True}
    await world.made("POST", "/v1/auth/device/answer", answered)
    return {"device_code": asked["device_code"]}


async def _user_code(world: World) -> Any:
    asked = await world.made("POST", "/v1/auth/device", {"name": world.word})
    return {"user_code": asked["user_code"]}


async def _report(world: World) -> Any:
    return {"items": [{"lease_id": await world.lease(), "action": "complete"}]}


async def _parcel_report(world: World) -> Any:
    parcel, _, run = (await world.lease()).partition(".")
    succeeded = [{"runs": [str(from_text("run", run))]}]
    return {"parcels": [{"lease_id": parcel, "succeeded": succeeded}]}


async def _key_text(world: World) -> Any:
    return {"key": await world.served.key(world.tenant)}


async def _session(world: World) -> dict[str, str]:
    opened = await Client(world.served.port)("POST", "/v1/sessions", await _key_text(world))
    cookie = opened.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "betimes-csrf": opened.json["csrf_token"]}


async def _signing(world: World) -> None:
    """A service that signs."""
    object.__setattr__(world.served.service, "signing", lambda _: (bytes(32),))


async def _explained(world: World) -> str:
    return f"run={await world.run()}"


async def _waiting(world: World) -> Any:
    key = fresh("dedupe")
    await world.run(dedupe_key=key, delay="PT1H")
    return {"dedupe_key": key}


async def _running(world: World) -> Any:
    key, queue = fresh("dedupe"), fresh("q")
    await world.run(dedupe_key=key, queue=queue)
    worker = await world.worker(queues=[queue])
    await world.made("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
    return {"dedupe_key": key}


async def _broken(world: World) -> None:
    """An origin that workers have given up for a while."""
    service = world.served.service
    at = service.clock.now()
    row = BreakerRow(
        tenant=world.tenant,
        origin="https://a.example",
        state=1,
        failures=5,
        opened_at=at,
        probe_at=at,
    )
    await Breakers(service.desk.database, WorkerId(UUID(int=1)), service.clock).write([row])


async def _ids(world: World) -> Any:
    return {"action": "cancel", "ids": [await world.run()]}


async def _same_job(world: World) -> Any:
    """A body whose dedupe key is taken."""
    body = {**world.definition, "dedupe_key": fresh("dedupe")}
    await world.made("POST", "/v1/jobs", body)
    return body


async def _same_run(world: World) -> Any:
    body = {"handler": world.word, "dedupe_key": fresh("dedupe")}
    await world.made("POST", "/v1/runs", body)
    return body


async def _same_tenant(world: World) -> Any:
    return {"slug": await world.other_tenant(), "name": world.word}


async def _same_member(world: World) -> Any:
    body = {"email": f"{fresh('m')}@example.org", "name": world.word}
    await world.made("POST", "/v1/members", body)
    return body


async def _foreign_job(world: World) -> Any:
    """A job that is there and belongs to no set."""
    name = await named_job(world)
    return {"jobs": [{**world.definition, "name": name}], "selector": {"tags": {"set": "x"}}}


async def _suspended_key(world: World) -> Any:
    """The key of somebody whose tenant is closed."""
    slug = fresh("closed")
    tenant = await world.served.tenant(slug)
    text = await world.served.key(tenant, kind="sk")
    body = {"mode": "stop_all"}
    await world.made("POST", f"/v1/tenants/{slug}/suspend", body)
    world.served.service.credentials.forget_all()
    return {"key": text}


async def named_job(world: World) -> str:
    """A job under a name."""
    name = fresh("named")
    await world.job(name=name)
    return name


async def some_name(_: World) -> str:
    """A name nobody has used."""
    return fresh("some")


FORCED = "force=true"
RECIPES: Mapping[str, Recipe] = {
    "tenants.create": Recipe(body=_of(lambda w: {"slug": fresh("t"), "name": w.word})),
    "tenants.update": Recipe(body=_of(lambda w: {"name": w.word})),
    "tenants.delete": Recipe(places={"tenant": World.suspended_tenant}),
    "tenants.resume": Recipe(places={"tenant": World.suspended_tenant}),
    "tenants.set_quotas": Recipe(body={"quotas": {"jobs": 1000}}),
    "keys.create": Recipe(body=_of(lambda w: {"name": w.word})),
    "keys.update": Recipe(body=_of(lambda w: {"name": w.word})),
    "members.invite": Recipe(
        body=_of(lambda w: {"email": f"{fresh('m')}@example.org", "name": w.word})
    ),
    "members.update": Recipe(body={"role": "viewer"}),
    "sessions.create": Recipe(body=_key_text),
    "sessions.delete": Recipe(visit=True),
    "auth.device_token": Recipe(body=_device_code),
    "auth.answer_device": Recipe(body=_user_code),
    "jobs.create": Recipe(body=_of(lambda w: w.definition)),
    "jobs.replace": Recipe(
        body=_of(lambda w: w.definition), query=FORCED, places={"job": named_job}
    ),
    "jobs.update": Recipe(body={"priority": 3}),
    "jobs.resume": Recipe(places={"job": World.paused_job}),
    "jobs.create_many": Recipe(body=_of(lambda w: {"items": [w.definition]})),
    "jobs.rollback": Recipe(body={"revision": 1}, places={"job": World.edited_job}),
    "jobs.bulk": Recipe(body={"action": "pause", "filter": {}, "dry_run": True}),
    "jobs.apply": Recipe(
        body=_of(lambda w: {"jobs": [{**w.definition, "name": fresh("applied")}]})
    ),
    "search.find": Recipe(query="q=nothing"),
    "import.crontab": Recipe(raw=b"0 9 * * * report", query="dry_run=true"),
    "import.kubernetes": Recipe(body={"items": []}, query="dry_run=true"),
    "import.betimes": Recipe(body={"format": "betimes/1", "jobs": []}, query="dry_run=true"),
    "schedules.preview": Recipe(body={"schedule": "every 1h"}),
    "schedules.parse": Recipe(body={"text": "every day at 9:00"}),
    "jobs.backfill": Recipe(body={**SPAN, "dry_run": True}),
    "workflows.put": Recipe(
        body=_of(lambda w: {**w.workflow_definition, "timeout": "1h"}),
    ),
    "workflow_runs.retry": Recipe(places={"workflow_run": World.cancelled_workflow_run}),
    "workflow_runs.signal": Recipe(
        body=_of(lambda w: {"data": w.word}),
        places={"workflow_run": World.signalled_workflow_run, "workflow_node": World.last_node},
    ),
    "calendars.put": Recipe(
        body=_of(lambda w: {"dates": ["2026-12-25"], "description": w.word}), query=FORCED
    ),
    "targets.signing_secret": Recipe(before=_signing),
    "runs.create": Recipe(body=_of(lambda w: {"handler": w.word})),
    "runs.create_many": Recipe(body=_of(lambda w: {"items": [{"handler": w.word}]})),
    "runs.get": Recipe(places={"run": World.finished_run}),
    "explain.find": Recipe(query=_explained),
    "runs.attempt": Recipe(places={"run": World.letter}),
    "jobs.revision": Recipe(places={"job": World.edited_job}),
    "runs.update": Recipe(body={"priority": 1}),
    "runs.wait": Recipe(query="timeout=0"),
    "runs.result": Recipe(places={"run": World.finished_run}),
    "runs.retry": Recipe(places={"run": World.failing_run}),
    "runs.bulk": Recipe(body={"action": "cancel", "filter": {}, "dry_run": True}),
    "runs.enqueue_body": Recipe(raw=b"{}"),
    "runs.follow_log": Recipe(places={"run": World.finished_run}),
    "dead_letters.bulk": Recipe(body={"action": "discard", "filter": {}, "dry_run": True}),
    "dead_letters.update": Recipe(body=_of(lambda w: {"note": w.word})),
    "secrets.put": Recipe(body=_of(lambda w: {"value": w.word, "origins": ["*"]})),
    "secrets.bind": Recipe(body={"origins": ["https://api.example.com"]}),
    "secrets.delete_version": Recipe(places={"secret": World.old_secret}),
    "rate_limits.get": Recipe(places={"key": World.rate_key}),
    "rate_limits.put": Recipe(body={"limit": 2, "per": "1s"}, places={"key": World.rate_key}),
    "rate_limits.delete": Recipe(places={"key": World.rate_key}),
    "runs.cancel_by_key": Recipe(body=_waiting),
    "endpoints.create": Recipe(body=_of(lambda w: w.hook)),
    "endpoints.update": Recipe(body=_of(lambda w: {"name": w.word})),
    "events.trigger": Recipe(body=_of(lambda w: {"type": "run.dead", "data": {"note": w.word}})),
    "endpoints.redeliver": Recipe(body={"since": "2026-01-01T00:00:00Z"}),
    "alert_rules.put": Recipe(
        body={"condition": "queue_lag", "threshold": "PT1M", "queues": ["q"]}, query=FORCED
    ),
    "silences.create": Recipe(
        body=_of(
            lambda w: {
                "until": "2199-01-01T00:00:00Z",
                "reason": w.word,
                "subject": "queue:mail",
            }
        )
    ),
    "targets.reset": Recipe(body={"origin": "https://a.example/"}, before=_broken),
    "queues.put": Recipe(body=_of(lambda w: {"description": w.word})),
    "queues.purge": Recipe(body={"dry_run": True}),
    "blobs.create": Recipe(raw=b"x"),
    "workers.register": Recipe(body=_of(lambda w: {"name": w.word})),
    "workers.lease": Recipe(body={"wait": 0}),
    "workers.lease_parcels": Recipe(body={"wait": 0}),
    "leases.report": Recipe(body=_parcel_report),
    "leases.snooze": Recipe(body={"for": "PT1M"}),
    "leases.checkpoint": Recipe(body=_of(lambda w: {"data": w.word})),
    "leases.logs": Recipe(body=_of(lambda w: {"lines": [{"message": w.word}]})),
    "leases.batch": Recipe(body=_report),
    "forecast.what_if": Recipe(body={}),
}
"""How operations are called that need more than fresh things in their paths."""


NEVER = {"type": "cron", "expr": "0 0 30 2 *"}
FURTHER: Mapping[tuple[str, int], Recipe] = {
    ("jobs.create", 200): Recipe(body=_same_job),
    ("jobs.replace", 201): Recipe(
        body=_of(lambda w: w.definition), query=FORCED, places={"job": some_name}
    ),
    ("jobs.create_many", 207): Recipe(
        body=_of(lambda w: {"items": [w.definition], "mode": "independent"})
    ),
    ("jobs.backfill", 202): Recipe(body=SPAN),
    ("calendars.put", 201): Recipe(
        body={"dates": ["2026-12-25"]}, query=FORCED, places={"calendar": some_name}
    ),
    ("workflows.put", 200): Recipe(body=_of(lambda w: w.workflow_definition)),
    ("workflows.put", 201): Recipe(
        body=_of(lambda w: w.workflow_definition), places={"workflow": some_name}
    ),
    ("workflows.put", 422): Recipe(
        body={"nodes": {"a": {"handler": "h", "needs": ["a"]}}}, places={"workflow": some_name}
    ),
    ("workflows.delete", 409): Recipe(places={"workflow": World.used_workflow}),
    ("workflows.start", 422): Recipe(
        body={"input": "nonsense"}, places={"workflow": World.strict_workflow}
    ),
    ("workflow_runs.cancel", 409): Recipe(places={"workflow_run": World.failed_workflow_run}),
    ("workflow_runs.retry", 409): Recipe(),
    ("workflow_runs.skip", 409): Recipe(places={"workflow_run": World.cancelled_workflow_run}),
    ("workflow_runs.approve", 409): Recipe(places={"workflow_node": World.last_node}),
    ("workflow_runs.signal", 409): Recipe(),
    ("runs.create", 200): Recipe(body=_same_run),
    ("runs.payload", 206): Recipe(headers={"Range": "bytes=0-0"}),
    ("runs.result", 206): Recipe(headers={"Range": "bytes=-1"}, places={"run": World.finished_run}),
    ("runs.create_many", 207): Recipe(
        body=_of(lambda w: {"items": [{"handler": w.word}], "mode": "independent"})
    ),
    ("runs.cancel_by_key", 202): Recipe(body=_running),
    ("alert_rules.put", 201): Recipe(
        body={"condition": "queue_lag", "threshold": "PT1M", "queues": ["q"]},
        query=FORCED,
        places={"rule": some_name},
    ),
    ("blobs.read_granted", 404): Recipe(places={"grant": some_name}),
    ("secrets.put", 201): Recipe(
        body={"value": "x", "origins": ["*"]}, places={"secret": some_name}
    ),
    ("endpoints.create", 422): Recipe(
        body={"type": "webhook", "url": "https://127.0.0.1/", "event_types": ["*"]}
    ),
    ("endpoints.update", 422): Recipe(body={"url": "https://127.0.0.1/"}),
    ("endpoints.rotate_secret", 409): Recipe(places={"endpoint": World.chat}),
    ("runs.cancel", 202): Recipe(places={"run": World.running_run}),
    ("runs.bulk", 202): Recipe(body=_ids),
    ("runs.enqueue_body", 200): Recipe(
        raw=b"{}",
        headers={"Betimes-Dedupe-Key": "the-same"},
        before=lambda w: w.run(dedupe_key="the-same"),
    ),
    ("queues.purge", 202): Recipe(body={"confirm_count": 0}),
    ("import.crontab", 201): Recipe(raw=b"0 9 * * * report"),
    ("import.kubernetes", 201): Recipe(body={"items": []}),
    ("import.betimes", 201): Recipe(
        body=_of(lambda w: {"format": "betimes/1", "jobs": [w.definition]})
    ),
    ("jobs.bulk", 202): Recipe(
        body={"action": "pause", "filter": {"group": "nobody"}, "confirm_count": 0}
    ),
    ("dead_letters.bulk", 202): Recipe(
        body={"action": "discard", "filter": {"queue": "nobody"}, "confirm_count": 0}
    ),
    ("sessions.create", 401): Recipe(body={"code": "nonsense"}),
    ("sessions.create", 403): Recipe(body=_suspended_key),
    ("meta.error", 404): Recipe(places={"code": some_name}),
    ("tenants.create", 409): Recipe(body=_same_tenant),
    ("tenants.delete", 409): Recipe(),
    ("keys.update", 409): Recipe(body={"name": "x"}, places={"key": World.revoked_key}),
    ("keys.rotate", 409): Recipe(places={"key": World.revoked_key}),
    ("members.invite", 409): Recipe(body=_same_member),
    ("jobs.apply", 409): Recipe(body=_foreign_job),
    ("calendars.delete", 409): Recipe(places={"calendar": World.used_calendar}),
    ("queues.delete", 409): Recipe(places={"queue": World.full_queue}),
    ("workers.lease", 409): Recipe(body={"wait": 0}, places={"worker": World.drained_worker}),
    ("workers.lease_parcels", 409): Recipe(
        body={"wait": 0}, places={"worker": World.drained_worker}
    ),
    ("operations.cancel", 409): Recipe(places={"operation": World.ended_operation}),
    **{
        (f"leases.{verb}", 409): Recipe(body=body, places={"lease": World.lost_lease})
        for verb, body in {
            "cancel": None,
            "complete": None,
            "fail": None,
            "release": None,
            "snooze": {"for": "PT1M"},
            "extend": None,
            "progress": {"percent": 1},
            "checkpoint": {"data": 1},
            "logs": {"lines": [{"message": "m"}]},
        }.items()
    },
    ("tenants.create", 422): Recipe(body={"slug": "a", "name": "A", "timezone": "Nowhere"}),
    ("tenants.update", 422): Recipe(body={"timezone": "Nowhere"}),
    ("runs.bulk", 422): Recipe(body={"action": "cancel", "filter": {}, "confirm_count": 99}),
    ("dead_letters.bulk", 422): Recipe(
        body={"action": "discard", "filter": {}, "confirm_count": 99}
    ),
    ("queues.purge", 422): Recipe(body={"confirm_count": 99}),
    ("jobs.bulk", 422): Recipe(body={"action": "pause", "filter": {}, "confirm_count": 99}),
    ("jobs.apply", 422): Recipe(body={"jobs": [{"name": "n", "schedule": NEVER, "handler": "h"}]}),
    ("schedules.preview", 422): Recipe(body={"schedule": "every nonsense"}),
    ("schedules.parse", 422): Recipe(body={"text": "now and then"}),
    ("forecast.what_if", 422): Recipe(body={"add": [{"schedule": "nonsense"}]}),
}
"""How operations answer a certain status, where no general way leads there."""


def recipe_of(route: Route) -> Recipe:
    """How a route is called."""
    found = RECIPES.get(route.name)
    if found is None:
        assert route.body is None or route.body_optional, f"{route.name} has no recipe"
        return Recipe()
    return found


def writing(route: Route) -> Recipe:
    """The same for one that changes something, where the plainest call only looks."""
    plain = recipe_of(route)
    if plain.query == "dry_run=true":
        return FURTHER[route.name, 201]
    only_looks = isinstance(plain.body, dict) and plain.body.get("dry_run")
    return FURTHER[route.name, 202] if only_looks else plain
