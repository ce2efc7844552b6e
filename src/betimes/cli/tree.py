"""The tree of commands: nouns, their verbs, the operation behind each, and how answers look.

Arguments, options and help of a verb come from its operation (`surface`, generated from the
routes), so a command cannot drift from the API. What only people need stands here: which members
are said without a flag, what is asked before something is destroyed, which columns a table has.

Long because it is the table of all commands.
"""

from typing import NamedTuple


class Verb(NamedTuple):
    """One command made from one operation.

    `said` are members taken as arguments; `done` is what a table says instead of the answer;
    `danger` is asked first, `{}` being what it happens to; `counted` acts on as many as were
    confirmed; `wraps` names the one member that holds what the arguments said.
    """

    name: str
    operation: str
    says: str = ""
    said: tuple[str, ...] = ()
    done: str = ""
    danger: str = ""
    columns: str | None = None
    wide: str | None = None
    counted: bool = False
    hides: tuple[str, ...] = ()
    example: str = ""


class Noun(NamedTuple):
    """A group of commands; its columns are those of its lists."""

    says: str
    columns: str
    wide: str = ""
    verbs: tuple[Verb, ...] = ()
    special: tuple[tuple[str, str, str], ...] = ()
    """Commands written by hand: name, `module:function`, what the list says of it."""


ATTEMPTS = (
    "NO=number OUTCOME=outcome STARTED=started_at:when FINISHED=finished_at:when "
    "WORKER=worker_id RETRY=next_retry_at:when ERROR=error.message"
)
WORKFLOW_RUNS = (
    "ID=id WORKFLOW=workflow VERSION=version STATE=state STARTED=started_at:when "
    "FINISHED=finished_at:when ERROR=error.message"
)
FIRES = "LOCAL=local OFFSET=offset UTC=utc:time FLAGS=flags"

NOUNS: dict[str, Noun] = {
    "job": Noun(
        "Jobs: what is to run, and when.",
        "NAME=group~name|id STATE=status.state SCHEDULE=schedule_text "
        "NEXT=status.next_fire_at:when "
        "QUEUE=queue HANDLER=handler|target.url",
        "ID=id PRIORITY=priority REVISION=revision TAGS=tags CREATED=created_at:when",
        (
            Verb(
                "create",
                "jobs.create",
                said=("name",),
                example="betimes job create report --schedule '0 9 * * mon-fri' --handler report",
            ),
            Verb("list", "jobs.list", example="betimes job list --tag team:billing -o wide"),
            Verb("get", "jobs.get"),
            Verb("replace", "jobs.replace", hides=("name", "group"), done="replaced"),
            Verb(
                "pause",
                "jobs.pause",
                done="paused",
                example="betimes job pause report --reason 'database upgrade' --until 2h",
            ),
            Verb("resume", "jobs.resume", done="resumed"),
            Verb("cancel", "jobs.cancel", done="cancelled", danger="End the job {} for good"),
            Verb("delete", "jobs.delete", done="deleted", danger="Delete the job {}"),
            Verb("run", "jobs.run", done=""),
            Verb("skip", "jobs.skip_next"),
            Verb("backfill", "jobs.backfill"),
            Verb("next", "jobs.next", columns=FIRES),
            Verb(
                "history",
                "jobs.revisions",
                columns="REVISION=revision CURRENT=current MADE=made_at:when AUTHOR=author "
                "CHANGES=diff:count",
            ),
            Verb("rollback", "jobs.rollback", said=("revision",), done="rolled back"),
            Verb("stats", "jobs.stats"),
            Verb("why", "jobs.explain", says="Say why a job did not run, or what it waits for."),
            Verb("bulk", "jobs.bulk", said=("action",), counted=True),
        ),
        (
            ("edit", "betimes.cli.edit:edit", "Change a job: by flags, or in your editor."),
            ("apply", "betimes.cli.declared:apply", "Bring a directory of YAML about."),
            ("diff", "betimes.cli.declared:diff", "Show what `apply` would change."),
            ("watch", "betimes.cli.follow:watch_job", "Show the runs of a job as they happen."),
        ),
    ),
    "run": Noun(
        "Runs: one time that a job, or work without a job, is done.",
        "ID=id STATE=state HANDLER=handler QUEUE=queue ATTEMPT=attempt DUE=due_at:when "
        "TOOK=run_ms:ms",
        "JOB=job_id TRIGGER=trigger PRIORITY=priority LAG=lag_ms:ms WORKER=worker_id "
        "REASON=state_reason.code ERROR=error.message",
        (
            Verb("list", "runs.list", example="betimes run list --state dead --queue mail"),
            Verb("get", "runs.get"),
            Verb("attempts", "runs.attempts", columns=ATTEMPTS),
            Verb(
                "timeline",
                "runs.timeline",
                columns="AT=at:time STATE=state ATTEMPT=attempt WORKER=worker_id DETAIL=detail",
            ),
            Verb("payload", "runs.payload"),
            Verb("result", "runs.result"),
            Verb("cancel", "runs.cancel", done="cancelled"),
            Verb(
                "cancel-by-key",
                "runs.cancel_by_key",
                says="Cancel the run that holds a dedupe key.",
                said=("dedupe_key",),
            ),
            Verb("retry", "runs.retry", done="will be tried again"),
            Verb("replay", "runs.replay"),
            Verb("update", "runs.update", done="changed"),
            Verb("why", "runs.explain", says="Say why a run waits, or what became of it."),
            Verb(
                "bulk",
                "runs.bulk",
                said=("action",),
                counted=True,
                hides=("operation_id",),
                example="betimes run bulk cancel --queue mail --state queued --dry-run",
            ),
        ),
        (
            ("watch", "betimes.cli.follow:watch_run", "Wait for a run to end, telling its states."),
            ("logs", "betimes.cli.follow:logs", "Print what a run has logged; -f follows it."),
        ),
    ),
    "queue": Noun(
        "Queues: what workers take runs from.",
        "NAME=name PAUSED=paused DRAINING=draining CONCURRENCY=settings.max_concurrency "
        "WEIGHT=settings.weight REASON=reason",
        "FAIRNESS=settings.fairness RATE=settings.rate UPDATED=updated_at:when",
        (
            Verb("list", "queues.list"),
            Verb("get", "queues.get"),
            Verb(
                "set",
                "queues.put",
                done="set",
                example="betimes queue set mail --max-concurrency 10 --rate-limit 100",
            ),
            Verb("delete", "queues.delete", done="deleted", danger="Delete the queue {}"),
            Verb("pause", "queues.pause", done="paused"),
            Verb("resume", "queues.resume", done="resumed"),
            Verb("drain", "queues.drain", done="drains"),
            Verb("purge", "queues.purge", counted=True, hides=("operation_id",)),
            Verb("stats", "queues.stats"),
            Verb("series", "queues.series", columns="AT=at:time VALUE=value"),
            Verb("keys", "queues.keys", columns="KEY=key RUNNING=running WAITING=waiting"),
        ),
        (("top", "betimes.cli.top:queues", "Show the depth of every queue, live."),),
    ),
    "rate-limit": Noun(
        "Rates that runs of one key share.",
        "KEY=key LIMIT=limit PER=per",
        verbs=(
            Verb("list", "rate_limits.list"),
            Verb("get", "rate_limits.get"),
            Verb(
                "set",
                "rate_limits.put",
                done="set",
                example="betimes rate-limit set stripe --limit 100 --per 1m",
            ),
            Verb("delete", "rate_limits.delete", done="deleted", danger="Forget the rate of {}"),
        ),
    ),
    "worker": Noun(
        "Workers: who does the work.",
        "NAME=name STATE=state BUSY=busy SLOTS=slots QUEUES=queues HEARTBEAT=heartbeat_at:when",
        "ID=id VERSION=version HANDLERS=handlers:count STARTED=started_at:when",
        (
            Verb("list", "workers.list"),
            Verb("get", "workers.get"),
            Verb("drain", "workers.drain", done="drains"),
            Verb("delete", "workers.delete", done="deleted", danger="Forget the worker {}"),
        ),
        (("run", "betimes.cli.worker:run", "Do the work of an app."),),
    ),
    "dead": Noun(
        "Dead letters: runs that are out of attempts.",
        "ID=id STATE=state HANDLER=handler QUEUE=queue ATTEMPTS=attempts DEAD=dead_at:when "
        "ERROR=error.message",
        "RUN=run_id FINGERPRINT=fingerprint REASON=reason ASSIGNEE=assignee",
        (
            Verb("list", "dead_letters.list"),
            Verb(
                "groups",
                "dead_letters.groups",
                columns="FINGERPRINT=fingerprint COUNT=count HANDLER=handler LAST=last_at:when "
                "SAMPLE=sample.message",
            ),
            Verb("get", "dead_letters.get"),
            Verb("note", "dead_letters.update", done="noted"),
            Verb("redrive", "dead_letters.redrive"),
            Verb(
                "discard",
                "dead_letters.discard",
                done="discarded",
                danger="Discard the dead letter {}",
            ),
            Verb(
                "bulk",
                "dead_letters.bulk",
                said=("action",),
                counted=True,
                example="betimes dead bulk --filter 'handler:charge error:Timeout since:2h' "
                "--redrive --rate 20/s --dry-run",
            ),
        ),
    ),
    "calendar": Noun(
        "Calendars: days on which jobs fire, or do not.",
        "NAME=name DATES=dates:count RANGES=ranges:count WEEKDAYS=weekdays REVISION=revision",
        "USED_BY=used_by DESCRIPTION=description",
        (
            Verb("list", "calendars.list"),
            Verb("get", "calendars.get"),
            Verb("set", "calendars.put", done="set"),
            Verb("delete", "calendars.delete", done="deleted", danger="Delete the calendar {}"),
        ),
    ),
    "workflow": Noun(
        "Graphs of work, and their runs.",
        "NAME=name VERSION=version NODES=nodes:count POLICY=failure_policy CREATED=created_at:when",
        "TIMEOUT=timeout BY=created_by",
        (
            Verb("list", "workflows.list"),
            Verb("get", "workflows.get"),
            Verb("set", "workflows.put", done="set"),
            Verb("delete", "workflows.delete", done="deleted", danger="Delete the workflow {}"),
            Verb("versions", "workflows.versions"),
            Verb("version", "workflows.version"),
            Verb("start", "workflows.start", columns=WORKFLOW_RUNS),
            Verb("runs", "workflow_runs.list", columns=WORKFLOW_RUNS),
            Verb("run", "workflow_runs.get", columns=WORKFLOW_RUNS),
            Verb(
                "cancel",
                "workflow_runs.cancel",
                done="cancelled",
                danger="Cancel the workflow run {}",
                columns=WORKFLOW_RUNS,
            ),
            Verb("retry", "workflow_runs.retry", done="retried", columns=WORKFLOW_RUNS),
            Verb("skip", "workflow_runs.skip", done="skipped", columns=WORKFLOW_RUNS),
            Verb("approve", "workflow_runs.approve", done="approved", columns=WORKFLOW_RUNS),
            Verb("signal", "workflow_runs.signal", done="signalled", columns=WORKFLOW_RUNS),
        ),
        (("graph", "betimes.cli.graph:graph", "Draw a workflow, or one of its runs."),),
    ),
    "schedule": Noun(
        "Schedules, looked at before they are used.",
        FIRES,
        verbs=(
            Verb("preview", "schedules.preview", said=("schedule",)),
            Verb("parse", "schedules.parse", said=("text",)),
        ),
    ),
    "catchup": Noun(
        "Catching up after an outage.",
        "ID=id STATE=state RUNS=runs HELD=held RELEASED=released DROPPED=dropped "
        "FROM=first_fire_at:time TO=last_fire_at:time",
        "FOUND=found_at:when RATE=per_second REASON=reason",
        (
            Verb("list", "catchups.list"),
            Verb("get", "catchups.get"),
            Verb("approve", "catchups.approve", done="approved"),
            Verb(
                "drop",
                "catchups.drop",
                done="dropped",
                danger="Drop every held run of the catch-up {}",
            ),
        ),
    ),
    "operation": Noun(
        "Long work, and how far it is.",
        "ID=id KIND=kind STATE=state DONE=progress.done TOTAL=progress.total "
        "CREATED=created_at:when",
        "BY=created_by FINISHED=finished_at:when ERROR=error.detail",
        (
            Verb("list", "operations.list"),
            Verb("get", "operations.get"),
            Verb("cancel", "operations.cancel", done="cancelled"),
        ),
        (("wait", "betimes.cli.follow:wait_operation", "Wait for long work to end."),),
    ),
    "target": Noun(
        "Origins that jobs call.",
        "ORIGIN=origin STATE=state FAILURES=failures NEXT_PROBE=next_probe_at:when",
        "OPENED=opened_at:when UPDATED=updated_at:when",
        (
            Verb("list", "targets.list"),
            Verb("secret", "targets.signing_secret"),
            Verb("reset", "targets.reset", said=("origin",), done="closed"),
        ),
    ),
    "event": Noun(
        "What happened, in order.",
        "AT=at:time TYPE=type SUBJECT=subject DATA=data",
        "ID=id",
        (
            Verb("list", "events.list"),
            Verb(
                "types",
                "event_types.list",
                columns="TYPE=name SEVERITY=severity SAYS=says",
            ),
        ),
    ),
    "hook": Noun(
        "Who is told of what happens: webhooks, mailboxes, chats.",
        "ID=id TYPE=type TO=url|address EVENTS=event_types STATE=status.state "
        "ERROR=status.last_error",
        "NAME=name FAILURES=status.failures DISABLED=disabled_reason CREATED=created_at:when",
        (
            Verb("list", "endpoints.list"),
            Verb(
                "create",
                "endpoints.create",
                said=("type",),
                example="betimes hook create webhook --url https://example.org/h "
                "--event-types run.dead",
            ),
            Verb("get", "endpoints.get"),
            Verb("update", "endpoints.update", done="changed"),
            Verb("delete", "endpoints.delete", done="deleted", danger="Forget the endpoint {}"),
            Verb("test", "endpoints.test"),
            Verb("enable", "endpoints.enable", done="enabled"),
            Verb("rotate-secret", "endpoints.rotate_secret"),
            Verb(
                "deliveries",
                "endpoints.deliveries",
                columns="ID=id TYPE=event_type STATE=state ATTEMPT=attempt STATUS=status "
                "CREATED=created_at:when NEXT=next_attempt_at:when ERROR=error",
            ),
            Verb("delivery", "deliveries.get"),
            Verb("resend", "deliveries.redeliver", done="will be sent again"),
            Verb("redeliver", "endpoints.redeliver", hides=("operation_id",)),
        ),
    ),
    "secret": Noun(
        "Secrets that headers and payloads name.",
        "NAME=name VERSION=version VERSIONS=versions ORIGINS=origins UPDATED=updated_at:when "
        "BY=created_by",
        verbs=(
            Verb("list", "secrets.list"),
            Verb("get", "secrets.get"),
            Verb(
                "set",
                "secrets.put",
                done="kept",
                example="betimes secret set s --value - --origins https://api.example.com < s.key",
            ),
            Verb(
                "bind",
                "secrets.bind",
                done="bound",
                example="betimes secret bind s --origins https://api.example.com",
            ),
            Verb("delete", "secrets.delete", done="deleted", danger="Forget the secret {}"),
            Verb(
                "delete-version",
                "secrets.delete_version",
                done="deleted",
                danger="Forget a version of the secret {}",
            ),
        ),
    ),
    "tenant": Noun(
        "Tenants of the service.",
        "SLUG=slug NAME=name STATE=state PLAN=plan TIMEZONE=timezone WEIGHT=weight",
        "ID=id REASON=state_reason CREATED=created_at:when",
        (
            Verb("list", "tenants.list"),
            Verb("create", "tenants.create", said=("slug",)),
            Verb("get", "tenants.get"),
            Verb("update", "tenants.update", done="changed"),
            Verb(
                "suspend",
                "tenants.suspend",
                done="suspended",
                danger="Close the tenant {} for its users",
            ),
            Verb("resume", "tenants.resume", done="open again"),
            Verb(
                "delete",
                "tenants.delete",
                danger="Delete the tenant {} with all its jobs, runs and keys",
            ),
            Verb("quotas", "tenants.get_quotas", columns="NAME=name USED=used LIMIT=limit"),
            Verb("set-quotas", "tenants.set_quotas", said=("quotas",), done="limited"),
        ),
    ),
    "key": Noun(
        "API keys.",
        "ID=id NAME=name KIND=kind LAST_USED=last_used_at:when EXPIRES=expires_at:when "
        "REVOKED=revoked_at:when",
        "SCOPES=scopes QUEUES=queues CREATED=created_at:when REPLACES=replaces",
        (
            Verb("list", "keys.list"),
            Verb("create", "keys.create", said=("name",)),
            Verb("get", "keys.get"),
            Verb("update", "keys.update", done="changed"),
            Verb("revoke", "keys.revoke", done="revoked", danger="Revoke the key {} at once"),
            Verb("rotate", "keys.rotate"),
        ),
        (
            (
                "bootstrap",
                "betimes.cli.key:bootstrap",
                "Make the first administrator's key from the database, when there is none.",
            ),
        ),
    ),
    "member": Noun(
        "People of the tenant.",
        "ID=id EMAIL=email NAME=name ROLE=role SIGNED_IN=signed_in_at:when",
        "INVITED_UNTIL=invited_until:when CREATED=created_at:when",
        (
            Verb("list", "members.list"),
            Verb("invite", "members.invite", said=("email",)),
            Verb("get", "members.get"),
            Verb("update", "members.update", done="changed"),
            Verb("remove", "members.remove", done="removed", danger="Remove the member {}"),
        ),
    ),
    "quota": Noun(
        "Limits of the tenant.",
        "NAME=name USED=used LIMIT=limit",
        verbs=(Verb("list", "quotas.list"),),
    ),
    "audit": Noun(
        "Who did what.",
        "AT=at:time ACTION=action RESOURCE=resource ACTOR=actor.type BY=actor.id",
        "ID=id IP=actor.ip REQUEST=request_id",
        (
            Verb("list", "audit.list"),
            Verb("get", "audit.get"),
            Verb(
                "verify",
                "audit.verify",
                says="Recompute every chain of acts; fails when one is broken.",
            ),
            Verb("export", "audit.export"),
        ),
    ),
    "cluster": Noun(
        "The service itself.",
        "",
        verbs=(
            Verb("status", "cluster.get"),
            Verb(
                "shards",
                "cluster.shards",
                columns="SHARD=shard OWNER=owner EPOCH=epoch LEASE=lease_until:when "
                "PUBLISHED=published_through:when",
            ),
            Verb(
                "nodes",
                "cluster.nodes",
                columns="NAME=name ROLES=roles VERSION=version TZDATA=tzdata SKEW=skew_ms:ms "
                "HEARTBEAT=heartbeat_at:when STATE=state",
                wide="ID=id STARTED=started_at:when",
            ),
            Verb("pause", "cluster.pause", done="paused", danger="Stop every job of every tenant"),
            Verb("resume", "cluster.resume", done="resumed"),
            Verb("drain", "cluster.drain_node", done="drains", danger="Drain the node {}"),
        ),
    ),
    "blob": Noun(
        "Large payloads and results, by reference.",
        "ID=id SIZE=size TYPE=media_type EXPIRES=expires_at:when",
        verbs=(
            Verb("create", "blobs.create"),
            Verb("get", "blobs.get"),
            Verb("grant", "blobs.grant", columns="PATH=path EXPIRES=expires_at:when"),
        ),
    ),
    "alert": Noun(
        "What alert rules have found, and the rules.",
        "STATE=state SEVERITY=severity RULE=rule SUBJECT=subject SINCE=since:when TOLD=is_told",
        "ID=id VALUE=value THRESHOLD=threshold FIRED=fired_at:when RESOLVED=resolved_at:when",
        (
            Verb("list", "alerts.list"),
            Verb(
                "rules",
                "alert_rules.list",
                columns="NAME=name CONDITION=condition THRESHOLD=threshold WINDOW=window "
                "SEVERITY=severity DISABLED=disabled",
            ),
            Verb("rule", "alert_rules.get"),
            Verb(
                "set-rule",
                "alert_rules.put",
                done="set",
                example="betimes alert set-rule often --condition job_failed_n --threshold 3",
            ),
            Verb(
                "delete-rule",
                "alert_rules.delete",
                done="deleted",
                danger="Delete the alert rule {}",
            ),
            Verb(
                "silences",
                "silences.list",
                columns="ID=id RULE=rule SUBJECT=subject UNTIL=until:when REASON=reason",
            ),
            Verb("silence", "silences.create"),
            Verb("unsilence", "silences.delete", done="ended"),
        ),
    ),
}

# Commands of their own that are one operation each.
ALONE: dict[str, Verb] = {
    "whoami": Verb("whoami", "meta.whoami"),
    "upcoming": Verb(
        "upcoming", "upcoming.list",
        columns="DUE=due_at:when KIND=kind JOB=job_group~job_name|job_id HANDLER=handler "
        "QUEUE=queue PRIORITY=priority WILL_RUN=will_run REASON=reason_code RUN=run_id",
        example="betimes upcoming --within 1h --watch",
    ),
    "forecast": Verb(
        "forecast", "forecast.read",
        columns="AT=at:time GROUP=group FIRES=fires SLOTS=expected_slots CAPACITY=capacity_slots "
        "UTILISATION=utilisation:share",
        example="betimes forecast --hours 24 --step 1h --by queue",
    ),
    "what-if": Verb(
        "what-if", "forecast.what_if",
        example="""betimes what-if --add '[{"schedule": "0 * * * *", "count": 500}]'""",
    ),
    "usage": Verb(
        "usage", "usage.read",
        columns="GROUP=group RUNS=runs SUCCEEDED=succeeded DEAD=dead TIME=run_seconds:seconds "
        "LAG_P95=lag_ms.p95:ms",
    ),
    "search": Verb("search", "search.find", said=("q",),
                   columns="KIND=kind ID=id NAME=name STATE=state"),
    "metrics": Verb("metrics", "meta.metrics"),
    "trigger": Verb(
        "trigger", "events.trigger", said=("type",),
        columns="ID=id TYPE=type SUBJECT=subject DATA=data",
        example="betimes trigger run.dead",
    ),
}  # fmt: skip

# Operations without a command of their own, and why.
ELSEWHERE: dict[str, str] = {
    "meta.health": "`betimes doctor` asks it",
    "meta.ready": "`betimes doctor` asks it",
    "meta.version": "`betimes doctor` asks it",
    "meta.time": "`betimes doctor` asks it",
    "meta.openapi": "`betimes api GET /v1/openapi.json`",
    "sessions.create": "for browsers, which keep cookies",
    "sessions.delete": "for browsers, which keep cookies",
    "auth.device": "`betimes login`",
    "auth.device_token": "`betimes login`",
    "auth.answer_device": "`betimes login --answer CODE`",
    "jobs.update": "`betimes job edit`",
    "jobs.runs": "`betimes run list --job JOB`",
    "jobs.revision": "`betimes job history` shows all of them",
    "runs.attempt": "`betimes run attempts` shows all of them",
    "explain.find": "`betimes job why` and `betimes run why`",
    "blobs.read_granted": "a link, for any client of HTTP",
    "jobs.create_many": "`betimes import` and `betimes apply` make many",
    "jobs.apply": "`betimes apply` and `betimes diff`",
    "export.read": "`betimes export`",
    "import.betimes": "`betimes import betimes`",
    "import.crontab": "`betimes import crontab`, which reads it here",
    "import.kubernetes": "`betimes import kubernetes`, which reads them here",
    "runs.create": "`betimes enqueue`",
    "runs.create_many": "`betimes enqueue --batch`",
    "runs.enqueue_body": "`betimes enqueue` says the same with flags",
    "runs.wait": "`betimes run watch`",
    "runs.logs": "`betimes run logs`",
    "runs.follow_log": "`betimes run logs -f`",
    "events.stream": "`betimes listen`",
    "workers.register": "the protocol of workers",
    "workers.heartbeat": "the protocol of workers",
    "workers.lease": "the protocol of workers",
    "workers.lease_parcels": "the protocol of workers",
    "leases.report": "the protocol of workers",
    "leases.complete": "the protocol of workers",
    "leases.fail": "the protocol of workers",
    "leases.release": "the protocol of workers",
    "leases.snooze": "the protocol of workers",
    "leases.extend": "the protocol of workers",
    "leases.progress": "the protocol of workers",
    "leases.checkpoint": "the protocol of workers",
    "leases.cancel": "the protocol of workers",
    "workers.leave": "the protocol of workers",
    "leases.logs": "the protocol of workers",
    "leases.batch": "the protocol of workers",
}
