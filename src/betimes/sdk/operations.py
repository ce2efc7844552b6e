"""The table of operations, as both clients use it.

Long because it is generated: one entry for each operation.
"""

# Written by scripts/write_sdk.py; do not edit.

from typing import Any

import betimes.wire.alerts
import betimes.wire.apply
import betimes.wire.base
import betimes.wire.calendars
import betimes.wire.catchups
import betimes.wire.endpoints
import betimes.wire.explain
import betimes.wire.forecast
import betimes.wire.insights
import betimes.wire.jobs
import betimes.wire.keys
import betimes.wire.meta
import betimes.wire.more
import betimes.wire.operations
import betimes.wire.parcels
import betimes.wire.people
import betimes.wire.queues
import betimes.wire.revisions
import betimes.wire.runs
import betimes.wire.schedules
import betimes.wire.secrets
import betimes.wire.targets
import betimes.wire.workers
import betimes.wire.workflows
from betimes.sdk.operation import Operation

META_HEALTH = Operation(
    name="meta.health",
    method="GET",
    path="/healthz",
    answers={200: betimes.wire.meta.Health},
)
META_READY = Operation(
    name="meta.ready",
    method="GET",
    path="/readyz",
    answers={200: betimes.wire.meta.Ready},
)
META_VERSION = Operation(
    name="meta.version",
    method="GET",
    path="/v1/version",
    answers={200: betimes.wire.meta.Version},
)
META_TIME = Operation(
    name="meta.time",
    method="GET",
    path="/v1/time",
    answers={200: betimes.wire.meta.Time},
)
META_WHOAMI = Operation(
    name="meta.whoami",
    method="GET",
    path="/v1/whoami",
    answers={200: betimes.wire.meta.WhoAmI},
)
META_OPENAPI = Operation(
    name="meta.openapi",
    method="GET",
    path="/v1/openapi.json",
    answers={200: dict[str, Any]},
)
TENANTS_LIST = Operation(
    name="tenants.list",
    method="GET",
    path="/v1/tenants",
    answers={200: betimes.wire.base.Page[betimes.wire.keys.Tenant]},
)
TENANTS_CREATE = Operation(
    name="tenants.create",
    method="POST",
    path="/v1/tenants",
    answers={201: betimes.wire.keys.Tenant},
)
TENANTS_GET = Operation(
    name="tenants.get",
    method="GET",
    path="/v1/tenants/{tenant}",
    answers={200: betimes.wire.keys.Tenant},
)
TENANTS_UPDATE = Operation(
    name="tenants.update",
    method="PATCH",
    path="/v1/tenants/{tenant}",
    answers={200: betimes.wire.keys.Tenant},
)
TENANTS_SUSPEND = Operation(
    name="tenants.suspend",
    method="POST",
    path="/v1/tenants/{tenant}/suspend",
    answers={200: betimes.wire.keys.Tenant},
)
TENANTS_RESUME = Operation(
    name="tenants.resume",
    method="POST",
    path="/v1/tenants/{tenant}/resume",
    answers={200: betimes.wire.keys.Tenant},
)
TENANTS_DELETE = Operation(
    name="tenants.delete",
    method="DELETE",
    path="/v1/tenants/{tenant}",
    answers={202: betimes.wire.operations.Operation},
)
TENANTS_GET_QUOTAS = Operation(
    name="tenants.get_quotas",
    method="GET",
    path="/v1/tenants/{tenant}/quotas",
    answers={200: betimes.wire.keys.QuotaList},
)
TENANTS_SET_QUOTAS = Operation(
    name="tenants.set_quotas",
    method="PUT",
    path="/v1/tenants/{tenant}/quotas",
    answers={200: betimes.wire.keys.Tenant},
)
QUOTAS_LIST = Operation(
    name="quotas.list",
    method="GET",
    path="/v1/quotas",
    answers={200: betimes.wire.keys.QuotaList},
)
KEYS_LIST = Operation(
    name="keys.list",
    method="GET",
    path="/v1/api-keys",
    answers={200: betimes.wire.base.Page[betimes.wire.keys.Key]},
)
KEYS_CREATE = Operation(
    name="keys.create",
    method="POST",
    path="/v1/api-keys",
    answers={201: betimes.wire.keys.MadeKey},
)
KEYS_GET = Operation(
    name="keys.get",
    method="GET",
    path="/v1/api-keys/{key}",
    answers={200: betimes.wire.keys.Key},
)
KEYS_UPDATE = Operation(
    name="keys.update",
    method="PATCH",
    path="/v1/api-keys/{key}",
    answers={200: betimes.wire.keys.Key},
    keyed=True,
)
KEYS_REVOKE = Operation(
    name="keys.revoke",
    method="DELETE",
    path="/v1/api-keys/{key}",
    answers={204: None},
)
KEYS_ROTATE = Operation(
    name="keys.rotate",
    method="POST",
    path="/v1/api-keys/{key}/rotate",
    answers={201: betimes.wire.keys.MadeKey},
)
MEMBERS_LIST = Operation(
    name="members.list",
    method="GET",
    path="/v1/members",
    answers={200: betimes.wire.base.Page[betimes.wire.people.Member]},
)
MEMBERS_INVITE = Operation(
    name="members.invite",
    method="POST",
    path="/v1/members",
    answers={201: betimes.wire.people.Member},
)
MEMBERS_GET = Operation(
    name="members.get",
    method="GET",
    path="/v1/members/{member}",
    answers={200: betimes.wire.people.Member},
)
MEMBERS_UPDATE = Operation(
    name="members.update",
    method="PATCH",
    path="/v1/members/{member}",
    answers={200: betimes.wire.people.Member},
)
MEMBERS_REMOVE = Operation(
    name="members.remove",
    method="DELETE",
    path="/v1/members/{member}",
    answers={204: None},
)
SESSIONS_CREATE = Operation(
    name="sessions.create",
    method="POST",
    path="/v1/sessions",
    answers={201: betimes.wire.people.Session},
)
SESSIONS_DELETE = Operation(
    name="sessions.delete",
    method="DELETE",
    path="/v1/sessions/current",
    answers={204: None},
)
AUTH_DEVICE = Operation(
    name="auth.device",
    method="POST",
    path="/v1/auth/device",
    answers={200: betimes.wire.people.DeviceAsking},
)
AUTH_DEVICE_TOKEN = Operation(
    name="auth.device_token",
    method="POST",
    path="/v1/auth/device/token",
    answers={200: betimes.wire.people.Token},
)
AUTH_ANSWER_DEVICE = Operation(
    name="auth.answer_device",
    method="POST",
    path="/v1/auth/device/answer",
    answers={200: betimes.wire.people.DeviceAnswered},
)
JOBS_CREATE = Operation(
    name="jobs.create",
    method="POST",
    path="/v1/jobs",
    answers={201: betimes.wire.jobs.Job, 200: betimes.wire.jobs.Job},
    keyed=True,
)
JOBS_LIST = Operation(
    name="jobs.list",
    method="GET",
    path="/v1/jobs",
    answers={200: betimes.wire.base.Page[betimes.wire.jobs.Job]},
)
JOBS_GET = Operation(
    name="jobs.get",
    method="GET",
    path="/v1/jobs/{job}",
    answers={200: betimes.wire.jobs.Job},
)
JOBS_REPLACE = Operation(
    name="jobs.replace",
    method="PUT",
    path="/v1/jobs/{job}",
    answers={200: betimes.wire.jobs.Job, 201: betimes.wire.jobs.Job},
    keyed=True,
)
JOBS_UPDATE = Operation(
    name="jobs.update",
    method="PATCH",
    path="/v1/jobs/{job}",
    answers={200: betimes.wire.jobs.Job},
    keyed=True,
    media="application/merge-patch+json",
)
JOBS_DELETE = Operation(
    name="jobs.delete",
    method="DELETE",
    path="/v1/jobs/{job}",
    answers={204: None},
)
JOBS_PAUSE = Operation(
    name="jobs.pause",
    method="POST",
    path="/v1/jobs/{job}/pause",
    answers={200: betimes.wire.jobs.Job},
    keyed=True,
)
JOBS_RESUME = Operation(
    name="jobs.resume",
    method="POST",
    path="/v1/jobs/{job}/resume",
    answers={200: betimes.wire.jobs.Job},
    keyed=True,
)
JOBS_CANCEL = Operation(
    name="jobs.cancel",
    method="POST",
    path="/v1/jobs/{job}/cancel",
    answers={200: betimes.wire.jobs.Job},
    keyed=True,
)
JOBS_RUN = Operation(
    name="jobs.run",
    method="POST",
    path="/v1/jobs/{job}/run",
    answers={200: betimes.wire.runs.Run, 202: betimes.wire.runs.RunMade},
    keyed=True,
)
JOBS_SKIP_NEXT = Operation(
    name="jobs.skip_next",
    method="POST",
    path="/v1/jobs/{job}/skip-next",
    answers={200: betimes.wire.jobs.Skipped},
    keyed=True,
)
JOBS_CREATE_MANY = Operation(
    name="jobs.create_many",
    method="POST",
    path="/v1/jobs/batch",
    answers={201: betimes.wire.jobs.MadeJobs, 207: betimes.wire.jobs.MadeJobs},
    keyed=True,
)
JOBS_REVISIONS = Operation(
    name="jobs.revisions",
    method="GET",
    path="/v1/jobs/{job}/revisions",
    answers={200: betimes.wire.revisions.RevisionList},
)
JOBS_REVISION = Operation(
    name="jobs.revision",
    method="GET",
    path="/v1/jobs/{job}/revisions/{revision}",
    answers={200: betimes.wire.revisions.Revision},
)
JOBS_ROLLBACK = Operation(
    name="jobs.rollback",
    method="POST",
    path="/v1/jobs/{job}/rollback",
    answers={200: betimes.wire.jobs.Job},
    keyed=True,
)
SEARCH_FIND = Operation(
    name="search.find",
    method="GET",
    path="/v1/search",
    answers={200: betimes.wire.queues.FoundList},
)
JOBS_BULK = Operation(
    name="jobs.bulk",
    method="POST",
    path="/v1/jobs/bulk",
    answers={200: betimes.wire.operations.Matched, 202: betimes.wire.operations.Operation},
    keyed=True,
)
JOBS_APPLY = Operation(
    name="jobs.apply",
    method="POST",
    path="/v1/jobs/apply",
    answers={200: betimes.wire.apply.Applied},
    keyed=True,
)
IMPORT_CRONTAB = Operation(
    name="import.crontab",
    method="POST",
    path="/v1/import/crontab",
    answers={201: betimes.wire.queues.Imported, 200: betimes.wire.queues.Imported},
    keyed=True,
    media="*/*",
)
IMPORT_KUBERNETES = Operation(
    name="import.kubernetes",
    method="POST",
    path="/v1/import/kubernetes",
    answers={201: betimes.wire.queues.Imported, 200: betimes.wire.queues.Imported},
    keyed=True,
)
EXPORT_READ = Operation(
    name="export.read",
    method="GET",
    path="/v1/export",
    answers={200: betimes.wire.queues.Exported},
)
IMPORT_BETIMES = Operation(
    name="import.betimes",
    method="POST",
    path="/v1/import/betimes",
    answers={201: betimes.wire.queues.Imported, 200: betimes.wire.queues.Imported},
    keyed=True,
)
SCHEDULES_PREVIEW = Operation(
    name="schedules.preview",
    method="POST",
    path="/v1/schedules/preview",
    answers={200: betimes.wire.schedules.Preview},
)
SCHEDULES_PARSE = Operation(
    name="schedules.parse",
    method="POST",
    path="/v1/schedules/parse",
    answers={200: betimes.wire.schedules.Parsed},
)
JOBS_NEXT = Operation(
    name="jobs.next",
    method="GET",
    path="/v1/jobs/{job}/next",
    answers={200: betimes.wire.schedules.Preview},
)
UPCOMING_LIST = Operation(
    name="upcoming.list",
    method="GET",
    path="/v1/upcoming",
    answers={200: betimes.wire.base.Page[betimes.wire.schedules.Soon]},
)
JOBS_BACKFILL = Operation(
    name="jobs.backfill",
    method="POST",
    path="/v1/jobs/{job}/backfill",
    answers={202: betimes.wire.schedules.Backfilled, 200: betimes.wire.schedules.Backfilled},
    keyed=True,
)
CALENDARS_LIST = Operation(
    name="calendars.list",
    method="GET",
    path="/v1/calendars",
    answers={200: betimes.wire.base.Page[betimes.wire.calendars.Calendar]},
)
CALENDARS_GET = Operation(
    name="calendars.get",
    method="GET",
    path="/v1/calendars/{calendar}",
    answers={200: betimes.wire.calendars.Calendar},
)
CALENDARS_PUT = Operation(
    name="calendars.put",
    method="PUT",
    path="/v1/calendars/{calendar}",
    answers={200: betimes.wire.calendars.Calendar, 201: betimes.wire.calendars.Calendar},
    keyed=True,
)
CALENDARS_DELETE = Operation(
    name="calendars.delete",
    method="DELETE",
    path="/v1/calendars/{calendar}",
    answers={204: None},
)
TARGETS_RESET = Operation(
    name="targets.reset",
    method="POST",
    path="/v1/targets/reset",
    answers={200: betimes.wire.targets.Origin},
    keyed=True,
)
TARGETS_LIST = Operation(
    name="targets.list",
    method="GET",
    path="/v1/targets",
    answers={200: betimes.wire.base.Page[betimes.wire.targets.Origin]},
)
TARGETS_SIGNING_SECRET = Operation(
    name="targets.signing_secret",
    method="GET",
    path="/v1/targets/signing-secret",
    answers={200: betimes.wire.targets.SigningSecret},
)
SECRETS_LIST = Operation(
    name="secrets.list",
    method="GET",
    path="/v1/secrets",
    answers={200: betimes.wire.base.Page[betimes.wire.secrets.Secret]},
)
SECRETS_GET = Operation(
    name="secrets.get",
    method="GET",
    path="/v1/secrets/{secret}",
    answers={200: betimes.wire.secrets.SecretShown},
)
SECRETS_PUT = Operation(
    name="secrets.put",
    method="PUT",
    path="/v1/secrets/{secret}",
    answers={200: betimes.wire.secrets.Secret, 201: betimes.wire.secrets.Secret},
)
SECRETS_BIND = Operation(
    name="secrets.bind",
    method="PATCH",
    path="/v1/secrets/{secret}",
    answers={200: betimes.wire.secrets.Secret},
    keyed=True,
)
SECRETS_DELETE = Operation(
    name="secrets.delete",
    method="DELETE",
    path="/v1/secrets/{secret}",
    answers={204: None},
)
SECRETS_DELETE_VERSION = Operation(
    name="secrets.delete_version",
    method="DELETE",
    path="/v1/secrets/{secret}/versions/{version}",
    answers={204: None},
)
RUNS_CREATE = Operation(
    name="runs.create",
    method="POST",
    path="/v1/runs",
    answers={202: betimes.wire.runs.RunMade, 200: betimes.wire.runs.Run},
    keyed=True,
)
RUNS_CREATE_MANY = Operation(
    name="runs.create_many",
    method="POST",
    path="/v1/runs/batch",
    answers={202: betimes.wire.runs.RunsMade, 207: betimes.wire.runs.RunsTold},
    keyed=True,
)
RUNS_LIST = Operation(
    name="runs.list",
    method="GET",
    path="/v1/runs",
    answers={200: betimes.wire.base.Page[betimes.wire.runs.Run]},
)
RUNS_GET = Operation(
    name="runs.get",
    method="GET",
    path="/v1/runs/{run}",
    answers={200: betimes.wire.runs.Run},
)
RUNS_WAIT = Operation(
    name="runs.wait",
    method="GET",
    path="/v1/runs/{run}/wait",
    answers={200: betimes.wire.runs.Run},
)
RUNS_ATTEMPTS = Operation(
    name="runs.attempts",
    method="GET",
    path="/v1/runs/{run}/attempts",
    answers={200: betimes.wire.base.Page[betimes.wire.runs.Attempt]},
)
RUNS_ATTEMPT = Operation(
    name="runs.attempt",
    method="GET",
    path="/v1/runs/{run}/attempts/{number}",
    answers={200: betimes.wire.runs.Attempt},
)
JOBS_RUNS = Operation(
    name="jobs.runs",
    method="GET",
    path="/v1/jobs/{job}/runs",
    answers={200: betimes.wire.base.Page[betimes.wire.runs.Run]},
)
RUNS_TIMELINE = Operation(
    name="runs.timeline",
    method="GET",
    path="/v1/runs/{run}/timeline",
    answers={200: betimes.wire.runs.Timeline},
)
RUNS_PAYLOAD = Operation(
    name="runs.payload",
    method="GET",
    path="/v1/runs/{run}/payload",
    answers={200: bytes, 206: bytes},
    accepts="*/*",
)
RUNS_RESULT = Operation(
    name="runs.result",
    method="GET",
    path="/v1/runs/{run}/result",
    answers={200: bytes, 206: bytes},
    accepts="*/*",
)
RUNS_CANCEL = Operation(
    name="runs.cancel",
    method="POST",
    path="/v1/runs/{run}/cancel",
    answers={200: betimes.wire.runs.Run, 202: betimes.wire.runs.Run},
    keyed=True,
)
RUNS_CANCEL_BY_KEY = Operation(
    name="runs.cancel_by_key",
    method="POST",
    path="/v1/runs/cancel",
    answers={200: betimes.wire.runs.Run, 202: betimes.wire.runs.Run},
    keyed=True,
)
RUNS_RETRY = Operation(
    name="runs.retry",
    method="POST",
    path="/v1/runs/{run}/retry",
    answers={202: betimes.wire.runs.Run},
    keyed=True,
)
RUNS_REPLAY = Operation(
    name="runs.replay",
    method="POST",
    path="/v1/runs/{run}/replay",
    answers={202: betimes.wire.runs.RunMade},
    keyed=True,
)
RUNS_UPDATE = Operation(
    name="runs.update",
    method="PATCH",
    path="/v1/runs/{run}",
    answers={200: betimes.wire.runs.Run},
    keyed=True,
)
RUNS_BULK = Operation(
    name="runs.bulk",
    method="POST",
    path="/v1/runs/bulk",
    answers={200: betimes.wire.operations.Matched, 202: betimes.wire.operations.Operation},
    keyed=True,
)
RUNS_ENQUEUE_BODY = Operation(
    name="runs.enqueue_body",
    method="POST",
    path="/v1/enqueue/{handler}",
    answers={202: betimes.wire.runs.RunMade, 200: betimes.wire.runs.Run},
    keyed=True,
    media="*/*",
)
WORKFLOWS_LIST = Operation(
    name="workflows.list",
    method="GET",
    path="/v1/workflows",
    answers={200: betimes.wire.base.Page[betimes.wire.workflows.Workflow]},
)
WORKFLOWS_GET = Operation(
    name="workflows.get",
    method="GET",
    path="/v1/workflows/{workflow}",
    answers={200: betimes.wire.workflows.Workflow},
)
WORKFLOWS_PUT = Operation(
    name="workflows.put",
    method="PUT",
    path="/v1/workflows/{workflow}",
    answers={200: betimes.wire.workflows.Workflow, 201: betimes.wire.workflows.Workflow},
    keyed=True,
)
WORKFLOWS_DELETE = Operation(
    name="workflows.delete",
    method="DELETE",
    path="/v1/workflows/{workflow}",
    answers={204: None},
)
WORKFLOWS_VERSIONS = Operation(
    name="workflows.versions",
    method="GET",
    path="/v1/workflows/{workflow}/versions",
    answers={200: betimes.wire.base.Page[betimes.wire.workflows.Workflow]},
)
WORKFLOWS_VERSION = Operation(
    name="workflows.version",
    method="GET",
    path="/v1/workflows/{workflow}/versions/{version}",
    answers={200: betimes.wire.workflows.Workflow},
)
WORKFLOWS_START = Operation(
    name="workflows.start",
    method="POST",
    path="/v1/workflows/{workflow}/runs",
    answers={202: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
WORKFLOW_RUNS_LIST = Operation(
    name="workflow_runs.list",
    method="GET",
    path="/v1/workflow-runs",
    answers={200: betimes.wire.base.Page[betimes.wire.workflows.WorkflowRun]},
)
WORKFLOW_RUNS_GET = Operation(
    name="workflow_runs.get",
    method="GET",
    path="/v1/workflow-runs/{workflow_run}",
    answers={200: betimes.wire.workflows.WorkflowRun},
)
WORKFLOW_RUNS_CANCEL = Operation(
    name="workflow_runs.cancel",
    method="POST",
    path="/v1/workflow-runs/{workflow_run}/cancel",
    answers={202: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
WORKFLOW_RUNS_RETRY = Operation(
    name="workflow_runs.retry",
    method="POST",
    path="/v1/workflow-runs/{workflow_run}/retry",
    answers={202: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
WORKFLOW_RUNS_SKIP = Operation(
    name="workflow_runs.skip",
    method="POST",
    path="/v1/workflow-runs/{workflow_run}/nodes/{workflow_node}/skip",
    answers={200: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
WORKFLOW_RUNS_APPROVE = Operation(
    name="workflow_runs.approve",
    method="POST",
    path="/v1/workflow-runs/{workflow_run}/nodes/{workflow_node}/approve",
    answers={200: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
WORKFLOW_RUNS_SIGNAL = Operation(
    name="workflow_runs.signal",
    method="POST",
    path="/v1/workflow-runs/{workflow_run}/nodes/{workflow_node}/signal",
    answers={200: betimes.wire.workflows.WorkflowRun},
    keyed=True,
)
RUNS_FOLLOW_LOG = Operation(
    name="runs.follow_log",
    method="GET",
    path="/v1/runs/{run}/logs/stream",
    answers={200: str},
    accepts="text/event-stream",
)
AUDIT_EXPORT = Operation(
    name="audit.export",
    method="POST",
    path="/v1/audit/export",
    answers={200: bytes},
    accepts="*/*",
)
CATCHUPS_LIST = Operation(
    name="catchups.list",
    method="GET",
    path="/v1/catchups",
    answers={200: betimes.wire.base.Page[betimes.wire.catchups.Catchup]},
)
CATCHUPS_GET = Operation(
    name="catchups.get",
    method="GET",
    path="/v1/catchups/{catchup}",
    answers={200: betimes.wire.catchups.Catchup},
)
CATCHUPS_APPROVE = Operation(
    name="catchups.approve",
    method="POST",
    path="/v1/catchups/{catchup}/approve",
    answers={200: betimes.wire.catchups.Catchup},
    keyed=True,
)
CATCHUPS_DROP = Operation(
    name="catchups.drop",
    method="POST",
    path="/v1/catchups/{catchup}/drop",
    answers={200: betimes.wire.catchups.Catchup},
    keyed=True,
)
DEAD_LETTERS_LIST = Operation(
    name="dead_letters.list",
    method="GET",
    path="/v1/dead-letters",
    answers={200: betimes.wire.base.Page[betimes.wire.more.DeadLetter]},
)
DEAD_LETTERS_GROUPS = Operation(
    name="dead_letters.groups",
    method="GET",
    path="/v1/dead-letters/groups",
    answers={200: betimes.wire.more.LetterGroups},
)
DEAD_LETTERS_BULK = Operation(
    name="dead_letters.bulk",
    method="POST",
    path="/v1/dead-letters/bulk",
    answers={200: betimes.wire.operations.Matched, 202: betimes.wire.operations.Operation},
    keyed=True,
)
DEAD_LETTERS_GET = Operation(
    name="dead_letters.get",
    method="GET",
    path="/v1/dead-letters/{letter}",
    answers={200: betimes.wire.more.DeadLetter},
)
DEAD_LETTERS_UPDATE = Operation(
    name="dead_letters.update",
    method="PATCH",
    path="/v1/dead-letters/{letter}",
    answers={200: betimes.wire.more.DeadLetter},
    keyed=True,
)
DEAD_LETTERS_REDRIVE = Operation(
    name="dead_letters.redrive",
    method="POST",
    path="/v1/dead-letters/{letter}/redrive",
    answers={202: betimes.wire.runs.RunMade},
    keyed=True,
)
DEAD_LETTERS_DISCARD = Operation(
    name="dead_letters.discard",
    method="POST",
    path="/v1/dead-letters/{letter}/discard",
    answers={200: betimes.wire.more.DeadLetter},
    keyed=True,
)
QUEUES_LIST = Operation(
    name="queues.list",
    method="GET",
    path="/v1/queues",
    answers={200: betimes.wire.base.Page[betimes.wire.queues.Queue]},
)
QUEUES_GET = Operation(
    name="queues.get",
    method="GET",
    path="/v1/queues/{queue}",
    answers={200: betimes.wire.queues.Queue},
)
QUEUES_PUT = Operation(
    name="queues.put",
    method="PUT",
    path="/v1/queues/{queue}",
    answers={200: betimes.wire.queues.Queue},
)
QUEUES_DELETE = Operation(
    name="queues.delete",
    method="DELETE",
    path="/v1/queues/{queue}",
    answers={204: None},
)
QUEUES_PAUSE = Operation(
    name="queues.pause",
    method="POST",
    path="/v1/queues/{queue}/pause",
    answers={200: betimes.wire.queues.Queue},
    keyed=True,
)
QUEUES_RESUME = Operation(
    name="queues.resume",
    method="POST",
    path="/v1/queues/{queue}/resume",
    answers={200: betimes.wire.queues.Queue},
    keyed=True,
)
QUEUES_DRAIN = Operation(
    name="queues.drain",
    method="POST",
    path="/v1/queues/{queue}/drain",
    answers={200: betimes.wire.queues.Queue},
    keyed=True,
)
QUEUES_PURGE = Operation(
    name="queues.purge",
    method="POST",
    path="/v1/queues/{queue}/purge",
    answers={200: betimes.wire.operations.Matched, 202: betimes.wire.operations.Operation},
    keyed=True,
)
QUEUES_STATS = Operation(
    name="queues.stats",
    method="GET",
    path="/v1/queues/{queue}/stats",
    answers={200: betimes.wire.queues.QueueStats},
)
RATE_LIMITS_LIST = Operation(
    name="rate_limits.list",
    method="GET",
    path="/v1/rate-limits",
    answers={200: betimes.wire.base.Page[betimes.wire.queues.KeyRate]},
)
RATE_LIMITS_GET = Operation(
    name="rate_limits.get",
    method="GET",
    path="/v1/rate-limits/{key}",
    answers={200: betimes.wire.queues.KeyRate},
)
RATE_LIMITS_PUT = Operation(
    name="rate_limits.put",
    method="PUT",
    path="/v1/rate-limits/{key}",
    answers={200: betimes.wire.queues.KeyRate},
)
RATE_LIMITS_DELETE = Operation(
    name="rate_limits.delete",
    method="DELETE",
    path="/v1/rate-limits/{key}",
    answers={204: None},
)
JOBS_STATS = Operation(
    name="jobs.stats",
    method="GET",
    path="/v1/jobs/{job}/stats",
    answers={200: betimes.wire.insights.JobStats},
)
USAGE_READ = Operation(
    name="usage.read",
    method="GET",
    path="/v1/usage",
    answers={200: betimes.wire.insights.Usage},
)
QUEUES_SERIES = Operation(
    name="queues.series",
    method="GET",
    path="/v1/queues/{queue}/series",
    answers={200: betimes.wire.insights.Series},
)
QUEUES_KEYS = Operation(
    name="queues.keys",
    method="GET",
    path="/v1/queues/{queue}/keys",
    answers={200: betimes.wire.insights.QueueKeys},
)
BLOBS_CREATE = Operation(
    name="blobs.create",
    method="POST",
    path="/v1/blobs",
    answers={201: betimes.wire.queues.Blob},
    keyed=True,
    media="*/*",
)
BLOBS_GET = Operation(
    name="blobs.get",
    method="GET",
    path="/v1/blobs/{blob}",
    answers={200: bytes},
    accepts="*/*",
)
BLOBS_GRANT = Operation(
    name="blobs.grant",
    method="POST",
    path="/v1/blobs/{blob}/grants",
    answers={201: betimes.wire.queues.Grant},
)
BLOBS_READ_GRANTED = Operation(
    name="blobs.read_granted",
    method="GET",
    path="/v1/grants/{grant}",
    answers={200: bytes},
    accepts="*/*",
)
WORKERS_REGISTER = Operation(
    name="workers.register",
    method="POST",
    path="/v1/workers",
    answers={201: betimes.wire.workers.Registered},
    keyed=True,
)
WORKERS_LIST = Operation(
    name="workers.list",
    method="GET",
    path="/v1/workers",
    answers={200: betimes.wire.base.Page[betimes.wire.workers.Worker]},
)
WORKERS_GET = Operation(
    name="workers.get",
    method="GET",
    path="/v1/workers/{worker}",
    answers={200: betimes.wire.workers.Worker},
)
WORKERS_DELETE = Operation(
    name="workers.delete",
    method="DELETE",
    path="/v1/workers/{worker}",
    answers={204: None},
)
WORKERS_DRAIN = Operation(
    name="workers.drain",
    method="POST",
    path="/v1/workers/{worker}/drain",
    answers={202: betimes.wire.workers.Worker},
)
WORKERS_LEAVE = Operation(
    name="workers.leave",
    method="POST",
    path="/v1/workers/{worker}/leave",
    answers={204: None},
)
WORKERS_HEARTBEAT = Operation(
    name="workers.heartbeat",
    method="POST",
    path="/v1/workers/{worker}/heartbeat",
    answers={200: betimes.wire.workers.HeartbeatAnswer},
)
WORKERS_LEASE_PARCELS = Operation(
    name="workers.lease_parcels",
    method="POST",
    path="/v1/workers/{worker}/parcels",
    answers={200: betimes.wire.parcels.LeasedParcels},
)
LEASES_REPORT = Operation(
    name="leases.report",
    method="POST",
    path="/v1/leases/reports",
    answers={200: betimes.wire.parcels.ParcelsReported},
)
WORKERS_LEASE = Operation(
    name="workers.lease",
    method="POST",
    path="/v1/workers/{worker}/lease",
    answers={200: betimes.wire.workers.LeasedRuns},
)
LEASES_COMPLETE = Operation(
    name="leases.complete",
    method="POST",
    path="/v1/leases/{lease}/complete",
    answers={200: betimes.wire.workers.Settled},
)
LEASES_FAIL = Operation(
    name="leases.fail",
    method="POST",
    path="/v1/leases/{lease}/fail",
    answers={200: betimes.wire.workers.Settled},
)
LEASES_CANCEL = Operation(
    name="leases.cancel",
    method="POST",
    path="/v1/leases/{lease}/cancel",
    answers={200: betimes.wire.workers.Settled},
)
LEASES_RELEASE = Operation(
    name="leases.release",
    method="POST",
    path="/v1/leases/{lease}/release",
    answers={200: betimes.wire.workers.Settled},
)
LEASES_SNOOZE = Operation(
    name="leases.snooze",
    method="POST",
    path="/v1/leases/{lease}/snooze",
    answers={200: betimes.wire.workers.Settled},
)
LEASES_EXTEND = Operation(
    name="leases.extend",
    method="POST",
    path="/v1/leases/{lease}/extend",
    answers={200: betimes.wire.workers.ExtendedTo},
)
LEASES_PROGRESS = Operation(
    name="leases.progress",
    method="POST",
    path="/v1/leases/{lease}/progress",
    answers={202: betimes.wire.workers.Accepted},
)
LEASES_CHECKPOINT = Operation(
    name="leases.checkpoint",
    method="POST",
    path="/v1/leases/{lease}/checkpoint",
    answers={202: betimes.wire.workers.Accepted},
)
LEASES_LOGS = Operation(
    name="leases.logs",
    method="POST",
    path="/v1/leases/{lease}/logs",
    answers={202: betimes.wire.workers.Accepted},
)
LEASES_BATCH = Operation(
    name="leases.batch",
    method="POST",
    path="/v1/leases/batch",
    answers={207: betimes.wire.workers.ReportsDone},
)
RUNS_LOGS = Operation(
    name="runs.logs",
    method="GET",
    path="/v1/runs/{run}/logs",
    answers={200: betimes.wire.workers.Log},
)
JOBS_EXPLAIN = Operation(
    name="jobs.explain",
    method="GET",
    path="/v1/jobs/{job}/explain",
    answers={200: betimes.wire.explain.Explanation},
)
RUNS_EXPLAIN = Operation(
    name="runs.explain",
    method="GET",
    path="/v1/runs/{run}/explain",
    answers={200: betimes.wire.explain.Explanation},
)
EXPLAIN_FIND = Operation(
    name="explain.find",
    method="GET",
    path="/v1/explain",
    answers={200: betimes.wire.explain.Explanation},
)
META_METRICS = Operation(
    name="meta.metrics",
    method="GET",
    path="/metrics",
    answers={200: str},
    accepts="text/plain",
)
FORECAST_READ = Operation(
    name="forecast.read",
    method="GET",
    path="/v1/forecast",
    answers={200: betimes.wire.forecast.Forecast},
)
FORECAST_WHAT_IF = Operation(
    name="forecast.what_if",
    method="POST",
    path="/v1/forecast/what-if",
    answers={200: betimes.wire.forecast.Compared},
)
AUDIT_LIST = Operation(
    name="audit.list",
    method="GET",
    path="/v1/audit",
    answers={200: betimes.wire.base.Page[betimes.wire.more.AuditEntry]},
)
AUDIT_GET = Operation(
    name="audit.get",
    method="GET",
    path="/v1/audit/{act}",
    answers={200: betimes.wire.more.AuditEntry},
)
AUDIT_VERIFY = Operation(
    name="audit.verify",
    method="POST",
    path="/v1/audit/verify",
    answers={200: betimes.wire.more.Verified},
)
EVENTS_LIST = Operation(
    name="events.list",
    method="GET",
    path="/v1/events",
    answers={200: betimes.wire.more.EventPage},
)
EVENTS_STREAM = Operation(
    name="events.stream",
    method="GET",
    path="/v1/events/stream",
    answers={200: str},
    accepts="text/event-stream",
)
EVENTS_TRIGGER = Operation(
    name="events.trigger",
    method="POST",
    path="/v1/events/trigger",
    answers={201: betimes.wire.more.Event},
    keyed=True,
)
ENDPOINTS_LIST = Operation(
    name="endpoints.list",
    method="GET",
    path="/v1/endpoints",
    answers={200: betimes.wire.base.Page[betimes.wire.endpoints.Endpoint]},
)
ENDPOINTS_CREATE = Operation(
    name="endpoints.create",
    method="POST",
    path="/v1/endpoints",
    answers={201: betimes.wire.endpoints.Endpoint},
)
ENDPOINTS_GET = Operation(
    name="endpoints.get",
    method="GET",
    path="/v1/endpoints/{endpoint}",
    answers={200: betimes.wire.endpoints.Endpoint},
)
ENDPOINTS_UPDATE = Operation(
    name="endpoints.update",
    method="PATCH",
    path="/v1/endpoints/{endpoint}",
    answers={200: betimes.wire.endpoints.Endpoint},
    keyed=True,
)
ENDPOINTS_DELETE = Operation(
    name="endpoints.delete",
    method="DELETE",
    path="/v1/endpoints/{endpoint}",
    answers={204: None},
)
ENDPOINTS_ROTATE_SECRET = Operation(
    name="endpoints.rotate_secret",
    method="POST",
    path="/v1/endpoints/{endpoint}/rotate-secret",
    answers={200: betimes.wire.endpoints.Endpoint},
)
ENDPOINTS_ENABLE = Operation(
    name="endpoints.enable",
    method="POST",
    path="/v1/endpoints/{endpoint}/enable",
    answers={200: betimes.wire.endpoints.Endpoint},
    keyed=True,
)
EVENT_TYPES_LIST = Operation(
    name="event_types.list",
    method="GET",
    path="/v1/event-types",
    answers={200: betimes.wire.endpoints.EventTypes},
)
ENDPOINTS_REDELIVER = Operation(
    name="endpoints.redeliver",
    method="POST",
    path="/v1/endpoints/{endpoint}/redeliver",
    answers={202: betimes.wire.operations.Operation},
    keyed=True,
)
ENDPOINTS_TEST = Operation(
    name="endpoints.test",
    method="POST",
    path="/v1/endpoints/{endpoint}/test",
    answers={200: betimes.wire.endpoints.Delivery},
    keyed=True,
)
ENDPOINTS_DELIVERIES = Operation(
    name="endpoints.deliveries",
    method="GET",
    path="/v1/endpoints/{endpoint}/deliveries",
    answers={200: betimes.wire.base.Page[betimes.wire.endpoints.Delivery]},
)
DELIVERIES_GET = Operation(
    name="deliveries.get",
    method="GET",
    path="/v1/deliveries/{delivery}",
    answers={200: betimes.wire.endpoints.Delivery},
)
DELIVERIES_REDELIVER = Operation(
    name="deliveries.redeliver",
    method="POST",
    path="/v1/deliveries/{delivery}/redeliver",
    answers={202: betimes.wire.endpoints.Delivery},
    keyed=True,
)
ALERT_RULES_LIST = Operation(
    name="alert_rules.list",
    method="GET",
    path="/v1/alert-rules",
    answers={200: betimes.wire.base.Page[betimes.wire.alerts.Rule]},
)
ALERT_RULES_GET = Operation(
    name="alert_rules.get",
    method="GET",
    path="/v1/alert-rules/{rule}",
    answers={200: betimes.wire.alerts.Rule},
)
ALERT_RULES_PUT = Operation(
    name="alert_rules.put",
    method="PUT",
    path="/v1/alert-rules/{rule}",
    answers={200: betimes.wire.alerts.Rule, 201: betimes.wire.alerts.Rule},
    keyed=True,
)
ALERT_RULES_DELETE = Operation(
    name="alert_rules.delete",
    method="DELETE",
    path="/v1/alert-rules/{rule}",
    answers={204: None},
)
ALERTS_LIST = Operation(
    name="alerts.list",
    method="GET",
    path="/v1/alerts",
    answers={200: betimes.wire.base.Page[betimes.wire.alerts.Alert]},
)
SILENCES_LIST = Operation(
    name="silences.list",
    method="GET",
    path="/v1/silences",
    answers={200: betimes.wire.base.Page[betimes.wire.alerts.Silence]},
)
SILENCES_CREATE = Operation(
    name="silences.create",
    method="POST",
    path="/v1/silences",
    answers={201: betimes.wire.alerts.Silence},
    keyed=True,
)
SILENCES_DELETE = Operation(
    name="silences.delete",
    method="DELETE",
    path="/v1/silences/{silence}",
    answers={204: None},
)
OPERATIONS_LIST = Operation(
    name="operations.list",
    method="GET",
    path="/v1/operations",
    answers={200: betimes.wire.base.Page[betimes.wire.operations.Operation]},
)
OPERATIONS_GET = Operation(
    name="operations.get",
    method="GET",
    path="/v1/operations/{operation}",
    answers={200: betimes.wire.operations.Operation},
)
OPERATIONS_CANCEL = Operation(
    name="operations.cancel",
    method="POST",
    path="/v1/operations/{operation}/cancel",
    answers={200: betimes.wire.operations.Operation},
    keyed=True,
)
CLUSTER_GET = Operation(
    name="cluster.get",
    method="GET",
    path="/v1/cluster",
    answers={200: betimes.wire.more.ClusterShown},
)
CLUSTER_SHARDS = Operation(
    name="cluster.shards",
    method="GET",
    path="/v1/cluster/shards",
    answers={200: betimes.wire.more.ShardList},
)
CLUSTER_NODES = Operation(
    name="cluster.nodes",
    method="GET",
    path="/v1/cluster/nodes",
    answers={200: betimes.wire.more.NodeList},
)
CLUSTER_PAUSE = Operation(
    name="cluster.pause",
    method="POST",
    path="/v1/cluster/pause",
    answers={200: betimes.wire.more.ClusterShown},
)
CLUSTER_RESUME = Operation(
    name="cluster.resume",
    method="POST",
    path="/v1/cluster/resume",
    answers={200: betimes.wire.more.ClusterShown},
)
CLUSTER_DRAIN_NODE = Operation(
    name="cluster.drain_node",
    method="POST",
    path="/v1/cluster/nodes/{node}/drain",
    answers={202: betimes.wire.more.NodeShown},
)

OPERATIONS = (
    META_HEALTH,
    META_READY,
    META_VERSION,
    META_TIME,
    META_WHOAMI,
    META_OPENAPI,
    TENANTS_LIST,
    TENANTS_CREATE,
    TENANTS_GET,
    TENANTS_UPDATE,
    TENANTS_SUSPEND,
    TENANTS_RESUME,
    TENANTS_DELETE,
    TENANTS_GET_QUOTAS,
    TENANTS_SET_QUOTAS,
    QUOTAS_LIST,
    KEYS_LIST,
    KEYS_CREATE,
    KEYS_GET,
    KEYS_UPDATE,
    KEYS_REVOKE,
    KEYS_ROTATE,
    MEMBERS_LIST,
    MEMBERS_INVITE,
    MEMBERS_GET,
    MEMBERS_UPDATE,
    MEMBERS_REMOVE,
    SESSIONS_CREATE,
    SESSIONS_DELETE,
    AUTH_DEVICE,
    AUTH_DEVICE_TOKEN,
    AUTH_ANSWER_DEVICE,
    JOBS_CREATE,
    JOBS_LIST,
    JOBS_GET,
    JOBS_REPLACE,
    JOBS_UPDATE,
    JOBS_DELETE,
    JOBS_PAUSE,
    JOBS_RESUME,
    JOBS_CANCEL,
    JOBS_RUN,
    JOBS_SKIP_NEXT,
    JOBS_CREATE_MANY,
    JOBS_REVISIONS,
    JOBS_REVISION,
    JOBS_ROLLBACK,
    SEARCH_FIND,
    JOBS_BULK,
    JOBS_APPLY,
    IMPORT_CRONTAB,
    IMPORT_KUBERNETES,
    EXPORT_READ,
    IMPORT_BETIMES,
    SCHEDULES_PREVIEW,
    SCHEDULES_PARSE,
    JOBS_NEXT,
    UPCOMING_LIST,
    JOBS_BACKFILL,
    CALENDARS_LIST,
    CALENDARS_GET,
    CALENDARS_PUT,
    CALENDARS_DELETE,
    TARGETS_RESET,
    TARGETS_LIST,
    TARGETS_SIGNING_SECRET,
    SECRETS_LIST,
    SECRETS_GET,
    SECRETS_PUT,
    SECRETS_BIND,
    SECRETS_DELETE,
    SECRETS_DELETE_VERSION,
    RUNS_CREATE,
    RUNS_CREATE_MANY,
    RUNS_LIST,
    RUNS_GET,
    RUNS_WAIT,
    RUNS_ATTEMPTS,
    RUNS_ATTEMPT,
    JOBS_RUNS,
    RUNS_TIMELINE,
    RUNS_PAYLOAD,
    RUNS_RESULT,
    RUNS_CANCEL,
    RUNS_CANCEL_BY_KEY,
    RUNS_RETRY,
    RUNS_REPLAY,
    RUNS_UPDATE,
    RUNS_BULK,
    RUNS_ENQUEUE_BODY,
    WORKFLOWS_LIST,
    WORKFLOWS_GET,
    WORKFLOWS_PUT,
    WORKFLOWS_DELETE,
    WORKFLOWS_VERSIONS,
    WORKFLOWS_VERSION,
    WORKFLOWS_START,
    WORKFLOW_RUNS_LIST,
    WORKFLOW_RUNS_GET,
    WORKFLOW_RUNS_CANCEL,
    WORKFLOW_RUNS_RETRY,
    WORKFLOW_RUNS_SKIP,
    WORKFLOW_RUNS_APPROVE,
    WORKFLOW_RUNS_SIGNAL,
    RUNS_FOLLOW_LOG,
    AUDIT_EXPORT,
    CATCHUPS_LIST,
    CATCHUPS_GET,
    CATCHUPS_APPROVE,
    CATCHUPS_DROP,
    DEAD_LETTERS_LIST,
    DEAD_LETTERS_GROUPS,
    DEAD_LETTERS_BULK,
    DEAD_LETTERS_GET,
    DEAD_LETTERS_UPDATE,
    DEAD_LETTERS_REDRIVE,
    DEAD_LETTERS_DISCARD,
    QUEUES_LIST,
    QUEUES_GET,
    QUEUES_PUT,
    QUEUES_DELETE,
    QUEUES_PAUSE,
    QUEUES_RESUME,
    QUEUES_DRAIN,
    QUEUES_PURGE,
    QUEUES_STATS,
    RATE_LIMITS_LIST,
    RATE_LIMITS_GET,
    RATE_LIMITS_PUT,
    RATE_LIMITS_DELETE,
    JOBS_STATS,
    USAGE_READ,
    QUEUES_SERIES,
    QUEUES_KEYS,
    BLOBS_CREATE,
    BLOBS_GET,
    BLOBS_GRANT,
    BLOBS_READ_GRANTED,
    WORKERS_REGISTER,
    WORKERS_LIST,
    WORKERS_GET,
    WORKERS_DELETE,
    WORKERS_DRAIN,
    WORKERS_LEAVE,
    WORKERS_HEARTBEAT,
    WORKERS_LEASE_PARCELS,
    LEASES_REPORT,
    WORKERS_LEASE,
    LEASES_COMPLETE,
    LEASES_FAIL,
    LEASES_CANCEL,
    LEASES_RELEASE,
    LEASES_SNOOZE,
    LEASES_EXTEND,
    LEASES_PROGRESS,
    LEASES_CHECKPOINT,
    LEASES_LOGS,
    LEASES_BATCH,
    RUNS_LOGS,
    JOBS_EXPLAIN,
    RUNS_EXPLAIN,
    EXPLAIN_FIND,
    META_METRICS,
    FORECAST_READ,
    FORECAST_WHAT_IF,
    AUDIT_LIST,
    AUDIT_GET,
    AUDIT_VERIFY,
    EVENTS_LIST,
    EVENTS_STREAM,
    EVENTS_TRIGGER,
    ENDPOINTS_LIST,
    ENDPOINTS_CREATE,
    ENDPOINTS_GET,
    ENDPOINTS_UPDATE,
    ENDPOINTS_DELETE,
    ENDPOINTS_ROTATE_SECRET,
    ENDPOINTS_ENABLE,
    EVENT_TYPES_LIST,
    ENDPOINTS_REDELIVER,
    ENDPOINTS_TEST,
    ENDPOINTS_DELIVERIES,
    DELIVERIES_GET,
    DELIVERIES_REDELIVER,
    ALERT_RULES_LIST,
    ALERT_RULES_GET,
    ALERT_RULES_PUT,
    ALERT_RULES_DELETE,
    ALERTS_LIST,
    SILENCES_LIST,
    SILENCES_CREATE,
    SILENCES_DELETE,
    OPERATIONS_LIST,
    OPERATIONS_GET,
    OPERATIONS_CANCEL,
    CLUSTER_GET,
    CLUSTER_SHARDS,
    CLUSTER_NODES,
    CLUSTER_PAUSE,
    CLUSTER_RESUME,
    CLUSTER_DRAIN_NODE,
)
