"""One of everything, made over HTTP as its tenant's own client would."""

from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

from api_kit import Client, Served
from betimes.domain.ids import NodeId, TenantId, compose, from_text, to_text
from betimes.ops.deliveries import put_test
from betimes.ops.endpoints import get_endpoint
from betimes.store import nodes
from betimes.store.joining import Episode, EpisodeState, Pace, join, shard_of_tenant
from betimes.store.nodes import NodeCard
from betimes.store.pool import Connection

NUMBERS = count(1)


def fresh(word: str = "n") -> str:
    """A name nobody has used."""
    return f"{word}{next(NUMBERS)}"


class World:
    """Makes things of one tenant over HTTP; `word` is in everything it writes down."""

    def __init__(self, served: Served, client: Client, tenant: TenantId, word: str = "h") -> None:
        self.served = served
        self.client = client
        self.tenant = tenant
        self.word = word

    async def made(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """What a request that must succeed answers."""
        answer = await self.client(method, path, body, **more)
        assert answer.status < 300, (method, path, answer.body)
        return answer.json if answer.body else None

    @property
    def definition(self) -> dict[str, Any]:
        """A job that fires now and then."""
        schedule = {"type": "interval", "every": "PT1H", "anchor": "1970-01-01T00:00:00Z"}
        return {
            "schedule": schedule,
            "handler": self.word,
            "payload": self.word,
            "tags": {self.word: self.word},
            "metadata": {self.word: self.word},
            "description": self.word,
        }

    async def job(self, **more: Any) -> str:
        told = await self.made("POST", "/v1/jobs", {**self.definition, **more})
        return str(told["id"])

    async def paused_job(self) -> str:
        job = await self.job()
        await self.made("POST", f"/v1/jobs/{job}/pause", {"reason": self.word})
        return job

    async def edited_job(self) -> str:
        job = await self.job()
        await self.made("PATCH", f"/v1/jobs/{job}", {"priority": 2})
        return job

    async def run(self, **more: Any) -> str:
        body = {"handler": self.word, "payload": self.word, "tags": {self.word: self.word}}
        return str((await self.made("POST", "/v1/runs", {**body, **more}))["id"])

    async def worker(self, **more: Any) -> str:
        body = {"name": self.word, "handlers": [self.word], "slots": 10, **more}
        return str((await self.made("POST", "/v1/workers", body))["worker_id"])

    async def running(self) -> dict[str, Any]:
        """A run that a worker holds: as the worker was told."""
        queue = fresh("q")
        await self.run(queue=queue, retry={"max_attempts": 1})
        worker = await self.worker(queues=[queue])
        told = await self.made("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
        leased: dict[str, Any] = told["runs"][0]
        return {**leased, "worker": worker}

    async def running_run(self) -> str:
        return str((await self.running())["run_id"])

    async def lease(self) -> str:
        return str((await self.running())["lease_id"])

    async def lost_lease(self) -> str:
        leased = await self.running()
        await self.made("DELETE", f"/v1/workers/{leased['worker']}")
        return str(leased["lease_id"])

    async def finished_run(self) -> str:
        leased = await self.running()
        done = {"result": self.word}
        await self.made("POST", f"/v1/leases/{leased['lease_id']}/complete", done)
        return str(leased["run_id"])

    async def letter(self) -> str:
        leased = await self.running()
        error = {"type": self.word, "message": self.word}
        body = {"retry": "never", "error": error}
        await self.made("POST", f"/v1/leases/{leased['lease_id']}/fail", body)
        return str(leased["run_id"])

    async def failing_run(self) -> str:
        """One that waits for its second attempt."""
        queue = fresh("q")
        run = await self.run(queue=queue)
        worker = await self.worker(queues=[queue])
        told = await self.made("POST", f"/v1/workers/{worker}/lease", {"wait": 0})
        await self.made("POST", f"/v1/leases/{told['runs'][0]['lease_id']}/fail")
        return run

    async def discarded_letter(self) -> str:
        run = await self.letter()
        await self.made("POST", f"/v1/dead-letters/{run}/discard")
        return run

    async def drained_worker(self) -> str:
        worker = await self.worker()
        await self.made("POST", f"/v1/workers/{worker}/drain")
        return worker

    async def key(self) -> str:
        return str((await self.made("POST", "/v1/api-keys", {"name": self.word}))["id"])

    async def revoked_key(self) -> str:
        key = await self.key()
        await self.made("DELETE", f"/v1/api-keys/{key}")
        return key

    async def act(self) -> str:
        await self.job()
        return str((await self.made("GET", "/v1/audit"))["items"][0]["id"])

    async def blob(self) -> str:
        return str((await self.made("POST", "/v1/blobs", raw=self.word.encode()))["id"])

    async def operation(self) -> str:
        body = {"action": "replay", "ids": [await self.run()]}
        return str((await self.made("POST", "/v1/runs/bulk", body))["id"])

    async def ended_operation(self) -> str:
        operation = await self.operation()
        while (await self.made("GET", f"/v1/operations/{operation}"))["state"] != "succeeded":
            await self.served.operate()
        return operation

    async def calendar(self) -> str:
        name = fresh("calendar")
        body = {"dates": ["2026-12-25"], "description": self.word}
        await self.made("PUT", f"/v1/calendars/{name}?force=true", body)
        return name

    async def used_calendar(self) -> str:
        name = await self.calendar()
        schedule = {**self.definition["schedule"], "calendars": {"exclude": [name]}}
        await self.job(schedule=schedule)
        return name

    @property
    def workflow_definition(self) -> dict[str, Any]:
        """A workflow in which nothing happens by itself."""
        gate = {"type": "approval"}
        node = {"handler": self.word, "payload": self.word}
        return {
            "nodes": {
                "first": {**node, "gate": gate},
                "last": {
                    **node,
                    "needs": ["first"],
                    "gate": {"type": "signal"},
                    "when": "all_done",
                },
            }
        }

    async def workflow(self) -> str:
        name = fresh("workflow")
        await self.made("PUT", f"/v1/workflows/{name}", self.workflow_definition)
        return name

    async def used_workflow(self) -> str:
        name = await self.workflow()
        await self.job(handler=None, target={"type": "workflow", "workflow": name})
        return name

    async def workflow_run(self) -> str:
        body = {"input": self.word, "tags": {self.word: self.word}}
        told = await self.made("POST", f"/v1/workflows/{await self.workflow()}/runs", body)
        return str(told["id"])

    async def strict_workflow(self) -> str:
        """One that takes an object and nothing else."""
        name = fresh("workflow")
        body = {**self.workflow_definition, "input_schema": {"type": "object"}}
        await self.made("PUT", f"/v1/workflows/{name}", body)
        return name

    async def failed_workflow_run(self) -> str:
        """One whose only node could not be given what it refers to."""
        name = fresh("workflow")
        body = {"nodes": {"n": {"handler": self.word, "payload": {"$input": "/nobody"}}}}
        await self.made("PUT", f"/v1/workflows/{name}", body)
        return str((await self.made("POST", f"/v1/workflows/{name}/runs", {}))["id"])

    async def cancelled_workflow_run(self) -> str:
        run = await self.workflow_run()
        await self.made("POST", f"/v1/workflow-runs/{run}/cancel", {"cleanup": False})
        return run

    async def signalled_workflow_run(self) -> str:
        """One whose last node waits for a signal."""
        run = await self.workflow_run()
        await self.made("POST", f"/v1/workflow-runs/{run}/nodes/first/skip", {})
        return run

    async def first_node(self) -> str:
        return "first"

    async def last_node(self) -> str:
        return "last"

    async def member(self) -> str:
        body = {"email": f"{fresh('m')}@example.org", "name": self.word}
        return str((await self.made("POST", "/v1/members", body))["id"])

    async def other_tenant(self) -> str:
        slug = fresh("tenant")
        await self.made("POST", "/v1/tenants", {"slug": slug, "name": self.word})
        return slug

    async def suspended_tenant(self) -> str:
        slug = await self.other_tenant()
        body = {"reason": self.word, "mode": "stop_all"}
        await self.made("POST", f"/v1/tenants/{slug}/suspend", body)
        return slug

    async def queue(self) -> str:
        name = fresh("queue")
        await self.made("PUT", f"/v1/queues/{name}", {"description": self.word})
        return name

    async def full_queue(self) -> str:
        name = await self.queue()
        await self.run(queue=name)
        return name

    async def node(self) -> str:
        node = NodeId(compose(1, 0, next(NUMBERS)))
        card = NodeCard(id=node, name="n", version="0", tzdata="test", roles=("api",))
        database = self.served.desk.database
        await nodes.beat(database, card, skew_ms=None, draining=False, now=None)
        return to_text("nod", node)

    async def catchup(self) -> str:
        """An episode, as a planner would have begun it."""
        now, desk = self.served.service.now(), self.served.desk

        async def work(connection: Connection) -> Episode:
            shard = shard_of_tenant(desk.shards, self.tenant)
            pace = Pace(per_second=1.0, unapproved=0)
            episode = await join(connection, shard, self.tenant, [now], pace=pace, at=now)
            await connection.execute(
                "UPDATE betimes.catchups SET state = $1 WHERE id = $2 AND state = $3",
                int(EpisodeState.WAITING),
                episode.id,
                int(EpisodeState.OPEN),
            )
            return episode

        return to_text("ctu", (await desk.transact(work, tenant=None)).id)

    async def secret(self) -> str:
        name = fresh("secret-")
        await self.made("PUT", f"/v1/secrets/{name}", {"value": self.word, "origins": ["*"]})
        return name

    async def old_secret(self) -> str:
        name = await self.secret()
        await self.made("PUT", f"/v1/secrets/{name}", {"value": self.word, "origins": ["*"]})
        return name

    async def rate_key(self) -> str:
        name = fresh("rate")
        await self.made("PUT", f"/v1/rate-limits/{name}", {"limit": 1, "per": "1s"})
        return name

    @property
    def hook(self) -> dict[str, Any]:
        """Somebody to be told of everything."""
        url = "https://example.com/hook"
        return {"type": "webhook", "url": url, "event_types": ["*"], "name": self.word}

    async def endpoint(self) -> str:
        return str((await self.made("POST", "/v1/endpoints", self.hook))["id"])

    async def chat(self) -> str:
        body = {**self.hook, "type": "chat"}
        return str((await self.made("POST", "/v1/endpoints", body))["id"])

    async def delivery(self) -> str:
        """A test that waits for a dispatcher."""
        endpoint, desk = from_text("ep", await self.endpoint()), self.served.desk
        found, _ = await get_endpoint(desk, self.tenant, endpoint)
        return to_text("dlv", await put_test(desk, found, request=fresh("test")))

    async def rule(self) -> str:
        name = fresh("rule")
        body = {"condition": "queue_lag", "threshold": "PT5M", "queues": [self.word]}
        await self.made("PUT", f"/v1/alert-rules/{name}?force=true", body)
        return name

    async def silence(self) -> str:
        body = {"until": "2199-01-01T00:00:00Z", "reason": self.word, "subject": "queue:mail"}
        return str((await self.made("POST", "/v1/silences", body))["id"])

    async def grant(self) -> str:
        path = f"/v1/blobs/{await self.blob()}/grants"
        return str((await self.made("POST", path, {"expires_in": "PT5M"}))["grant"])

    async def code(self) -> str:
        return "not_found"

    async def handler(self) -> str:
        return self.word

    async def number(self) -> str:
        return "1"


Make = Callable[[World], Awaitable[Any]]
PLACES: Mapping[str, Make] = {
    "job": World.job,
    "run": World.run,
    "letter": World.letter,
    "worker": World.worker,
    "key": World.key,
    "act": World.act,
    "blob": World.blob,
    "operation": World.operation,
    "calendar": World.calendar,
    "member": World.member,
    "tenant": World.other_tenant,
    "queue": World.queue,
    "node": World.node,
    "catchup": World.catchup,
    "workflow": World.workflow,
    "workflow_run": World.workflow_run,
    "workflow_node": World.first_node,
    "code": World.code,
    "lease": World.lease,
    "handler": World.handler,
    "revision": World.number,
    "number": World.number,
    "secret": World.secret,
    "version": World.number,
    "endpoint": World.endpoint,
    "delivery": World.delivery,
    "rule": World.rule,
    "silence": World.silence,
    "grant": World.grant,
}
"""Who makes what stands in a path."""
