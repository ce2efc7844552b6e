"""Every operation as a method, for both clients.

Long because it is generated: one method for each operation and client.
"""

# Written by scripts/write_sdk.py; do not edit.
# ruff: noqa: A002, ASYNC109, E501 -- as wide as the API

from __future__ import annotations

import builtins
import collections.abc
from typing import Any, Literal

import betimes.wire.alerts
import betimes.wire.apply
import betimes.wire.calendars
import betimes.wire.callbacks
import betimes.wire.catchups
import betimes.wire.endpoints
import betimes.wire.explain
import betimes.wire.forecast
import betimes.wire.insights
import betimes.wire.jobs
import betimes.wire.jobs_bulk
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
import betimes.wire.workflow_target
import betimes.wire.workflows
from betimes.sdk import operations as table
from betimes.sdk.calling import UNSET, AsyncCaller, AsyncPages, Caller, Pages, Unset


class Meta:
    """Operations of meta."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def health(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Health:
        """Whether the process is alive."""
        answer: betimes.wire.meta.Health = self._caller.call(
            table.META_HEALTH,
            timeout=request_timeout,
        )
        return answer

    def ready(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Ready:
        """Whether requests are welcome."""
        answer: betimes.wire.meta.Ready = self._caller.call(
            table.META_READY,
            timeout=request_timeout,
        )
        return answer

    def version(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Version:
        """Which release this is."""
        answer: betimes.wire.meta.Version = self._caller.call(
            table.META_VERSION,
            timeout=request_timeout,
        )
        return answer

    def time(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Time:
        """The time of the database, and how far nodes are from it."""
        answer: betimes.wire.meta.Time = self._caller.call(
            table.META_TIME,
            timeout=request_timeout,
        )
        return answer

    def whoami(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.WhoAmI:
        """Who asks, for whom, and how much they may."""
        answer: betimes.wire.meta.WhoAmI = self._caller.call(
            table.META_WHOAMI,
            timeout=request_timeout,
        )
        return answer

    def openapi(
        self,
        *,
        request_timeout: float | None = None,
    ) -> dict[str, Any]:
        """This document."""
        answer: dict[str, Any] = self._caller.call(
            table.META_OPENAPI,
            timeout=request_timeout,
        )
        return answer

    def metrics(
        self,
        *,
        request_timeout: float | None = None,
    ) -> str:
        """The metrics of this node as Prometheus reads them."""
        answer: str = self._caller.call(
            table.META_METRICS,
            timeout=request_timeout,
        )
        return answer


class Tenants:
    """Operations of tenants."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.keys.Tenant]:
        """List tenants."""
        answer: Pages[betimes.wire.keys.Tenant] = self._caller.pages(
            table.TENANTS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def create(
        self,
        *,
        slug: str,
        name: str,
        timezone: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        weight: float | Unset = UNSET,
        quotas: dict[str, int] | Unset = UNSET,
        settings: dict[str, Any] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Make a tenant."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_CREATE,
            body={
                "slug": slug,
                "name": name,
                "timezone": timezone,
                "plan": plan,
                "weight": weight,
                "quotas": quotas,
                "settings": settings,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Read one tenant."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_GET,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        tenant: str,
        *,
        name: str | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
        plan: str | Unset | None = UNSET,
        weight: float | Unset | None = UNSET,
        quotas: dict[str, int | None] | Unset | None = UNSET,
        settings: dict[str, Any] | Unset | None = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Change a tenant."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_UPDATE,
            path={"tenant": tenant},
            body={
                "name": name,
                "timezone": timezone,
                "plan": plan,
                "weight": weight,
                "quotas": quotas,
                "settings": settings,
            },
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def suspend(
        self,
        tenant: str,
        *,
        reason: str | Unset = UNSET,
        mode: Literal["reject_new", "stop_all"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Close a tenant for new things, or for everything."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_SUSPEND,
            path={"tenant": tenant},
            body={"reason": reason, "mode": mode},
            timeout=request_timeout,
        )
        return answer

    def resume(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Open a tenant again."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_RESUME,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        tenant: str,
        *,
        grace: str | float | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Delete a suspended tenant with all its data, as an operation that begins after a grace."""
        answer: betimes.wire.operations.Operation = self._caller.call(
            table.TENANTS_DELETE,
            path={"tenant": tenant},
            query={"grace": grace},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def get_quotas(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.QuotaList:
        """Every limit of a tenant, and how much of it is used."""
        answer: betimes.wire.keys.QuotaList = self._caller.call(
            table.TENANTS_GET_QUOTAS,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    def set_quotas(
        self,
        tenant: str,
        *,
        quotas: dict[str, int],
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Replace the quotas of a tenant."""
        answer: betimes.wire.keys.Tenant = self._caller.call(
            table.TENANTS_SET_QUOTAS,
            path={"tenant": tenant},
            body={"quotas": quotas},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Quotas:
    """Operations of quotas."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.QuotaList:
        """Every limit of the tenant, and how much of it is used."""
        answer: betimes.wire.keys.QuotaList = self._caller.call(
            table.QUOTAS_LIST,
            timeout=request_timeout,
        )
        return answer


class Keys:
    """Operations of keys."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.keys.Key]:
        """List keys."""
        answer: Pages[betimes.wire.keys.Key] = self._caller.pages(
            table.KEYS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def create(
        self,
        *,
        name: str,
        kind: Literal["sk", "wk", "rk", "ak"] | Unset = UNSET,
        scopes: builtins.list[str] | Unset = UNSET,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset | None = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        ip_allow: builtins.list[str] | Unset | None = UNSET,
        expires_at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.MadeKey:
        """Make a key; its secret is shown this once."""
        answer: betimes.wire.keys.MadeKey = self._caller.call(
            table.KEYS_CREATE,
            body={
                "name": name,
                "kind": kind,
                "scopes": scopes,
                "role": role,
                "queues": queues,
                "ip_allow": ip_allow,
                "expires_at": expires_at,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        key: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Key:
        """Read one key."""
        answer: betimes.wire.keys.Key = self._caller.call(
            table.KEYS_GET,
            path={"key": key},
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        key: str,
        *,
        name: str | Unset | None = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        ip_allow: builtins.list[str] | Unset | None = UNSET,
        expires_at: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Key:
        """Rename a key, bind it otherwise, or let it expire."""
        answer: betimes.wire.keys.Key = self._caller.call(
            table.KEYS_UPDATE,
            path={"key": key},
            body={"name": name, "queues": queues, "ip_allow": ip_allow, "expires_at": expires_at},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def revoke(
        self,
        key: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Revoke a key at once."""
        answer: None = self._caller.call(
            table.KEYS_REVOKE,
            path={"key": key},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def rotate(
        self,
        key: str,
        *,
        overlap: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.MadeKey:
        """Replace a key; the old one works until the overlap has passed."""
        answer: betimes.wire.keys.MadeKey = self._caller.call(
            table.KEYS_ROTATE,
            path={"key": key},
            body={"overlap": overlap},
            timeout=request_timeout,
        )
        return answer


class Members:
    """Operations of members."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.people.Member]:
        """List the people of the tenant."""
        answer: Pages[betimes.wire.people.Member] = self._caller.pages(
            table.MEMBERS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def invite(
        self,
        *,
        email: str,
        name: str,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Invite somebody; the code in the answer lets them in once."""
        answer: betimes.wire.people.Member = self._caller.call(
            table.MEMBERS_INVITE,
            body={"email": email, "name": name, "role": role},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        member: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Read one member."""
        answer: betimes.wire.people.Member = self._caller.call(
            table.MEMBERS_GET,
            path={"member": member},
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        member: str,
        *,
        name: str | Unset | None = UNSET,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset | None = UNSET,
        renew_code: bool | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Change the name or role of a member, or make a fresh code."""
        answer: betimes.wire.people.Member = self._caller.call(
            table.MEMBERS_UPDATE,
            path={"member": member},
            body={"name": name, "role": role, "renew_code": renew_code},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def remove(
        self,
        member: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Let a member go; their sessions end."""
        answer: None = self._caller.call(
            table.MEMBERS_REMOVE,
            path={"member": member},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Sessions:
    """Operations of sessions."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        key: str | Unset | None = UNSET,
        code: str | Unset | None = UNSET,
        tenant: str | Unset | None = UNSET,
        email: str | Unset | None = UNSET,
        password: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Session:
        """Sign in from a browser: with a key, a one-time code, or a password."""
        answer: betimes.wire.people.Session = self._caller.call(
            table.SESSIONS_CREATE,
            body={"key": key, "code": code, "tenant": tenant, "email": email, "password": password},
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Sign out."""
        answer: None = self._caller.call(
            table.SESSIONS_DELETE,
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Auth:
    """Operations of auth."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def device(
        self,
        *,
        name: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.DeviceAsking:
        """Begin to sign in a device that has no browser."""
        answer: betimes.wire.people.DeviceAsking = self._caller.call(
            table.AUTH_DEVICE,
            body={"name": name},
            timeout=request_timeout,
        )
        return answer

    def device_token(
        self,
        *,
        device_code: str,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Token:
        """The key of a device that was let in."""
        answer: betimes.wire.people.Token = self._caller.call(
            table.AUTH_DEVICE_TOKEN,
            body={"device_code": device_code},
            timeout=request_timeout,
        )
        return answer

    def answer_device(
        self,
        *,
        user_code: str,
        approve: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.DeviceAnswered:
        """Let a device act for the caller, or refuse it."""
        answer: betimes.wire.people.DeviceAnswered = self._caller.call(
            table.AUTH_ANSWER_DEVICE,
            body={"user_code": user_code, "approve": approve},
            timeout=request_timeout,
        )
        return answer


class Jobs:
    """Operations of jobs."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        schedule: str | dict[str, Any] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        group: str | Unset = UNSET,
        description: str | Unset = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        handler: str | Unset | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        payload_schema: dict[str, Any] | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        action_after_completion: Literal["keep", "delete"] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        paused: bool | Unset = UNSET,
        pause_reason: str | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        run_at: str | Unset | None = UNSET,
        cron: str | Unset | None = UNSET,
        payload_reference: str | Unset | None = UNSET,
        validate_only: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Create a job."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_CREATE,
            query={"validate_only": validate_only},
            body={
                "schedule": schedule,
                "name": name,
                "group": group,
                "description": description,
                "target": target,
                "handler": handler,
                "payload": payload,
                "payload_ref": payload_ref,
                "payload_schema": payload_schema,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "retention": retention,
                "tags": tags,
                "metadata": metadata,
                "action_after_completion": action_after_completion,
                "notify": notify,
                "paused": paused,
                "pause_reason": pause_reason,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
                "runAt": run_at,
                "cron": cron,
                "payloadRef": payload_reference,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        view: Literal["definition", "basic", "full"] | Unset = UNSET,
        state: builtins.list[Literal["active", "paused", "auto_paused", "completed", "cancelled"]]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        group: str | Unset | None = UNSET,
        name_prefix: str | Unset | None = UNSET,
        schedule_type: builtins.list[str] | Unset = UNSET,
        target_type: builtins.list[Literal["task", "http"]] | Unset = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        next_fire_after: str | Unset | None = UNSET,
        next_fire_before: str | Unset | None = UNSET,
        include: builtins.list[Literal["last_run"]] | Unset = UNSET,
        sort: Literal["created_at", "-created_at", "name", "next_fire_at", "-updated_at"]
        | Unset = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.jobs.Job]:
        """List jobs."""
        answer: Pages[betimes.wire.jobs.Job] = self._caller.pages(
            table.JOBS_LIST,
            query={
                "limit": limit,
                "fields": fields,
                "view": view,
                "state": state,
                "queue": queue,
                "handler": handler,
                "group": group,
                "name_prefix": name_prefix,
                "schedule_type": schedule_type,
                "target_type": target_type,
                "tag": tag,
                "next_fire_after": next_fire_after,
                "next_fire_before": next_fire_before,
                "include": include,
                "sort": sort,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        job: str,
        *,
        view: Literal["definition", "basic", "full"] | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        include: builtins.list[Literal["last_run", "stats_24h"]] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Read one job."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_GET,
            path={"job": job},
            query={"view": view, "fields": fields, "include": include},
            timeout=request_timeout,
        )
        return answer

    def replace(
        self,
        job: str,
        *,
        schedule: str | dict[str, Any] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        group: str | Unset = UNSET,
        description: str | Unset = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        handler: str | Unset | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        payload_schema: dict[str, Any] | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        action_after_completion: Literal["keep", "delete"] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        paused: bool | Unset = UNSET,
        pause_reason: str | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        run_at: str | Unset | None = UNSET,
        cron: str | Unset | None = UNSET,
        payload_reference: str | Unset | None = UNSET,
        validate_only: bool | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Create a job under a name, or replace its whole definition."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_REPLACE,
            path={"job": job},
            query={"validate_only": validate_only, "force": force},
            body={
                "schedule": schedule,
                "name": name,
                "group": group,
                "description": description,
                "target": target,
                "handler": handler,
                "payload": payload,
                "payload_ref": payload_ref,
                "payload_schema": payload_schema,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "retention": retention,
                "tags": tags,
                "metadata": metadata,
                "action_after_completion": action_after_completion,
                "notify": notify,
                "paused": paused,
                "pause_reason": pause_reason,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
                "runAt": run_at,
                "cron": cron,
                "payloadRef": payload_reference,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        job: str,
        *,
        changes: dict[str, Any],
        validate_only: bool | Unset = UNSET,
        apply_to: Literal["future", "pending"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Edit a job by a merge patch (RFC 7396)."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_UPDATE,
            path={"job": job},
            query={"validate_only": validate_only, "apply_to": apply_to},
            body=changes,
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        job: str,
        *,
        runs: Literal["keep", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a job; its history stays readable until its retention ends."""
        answer: None = self._caller.call(
            table.JOBS_DELETE,
            path={"job": job},
            query={"runs": runs},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def pause(
        self,
        job: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        running: Literal["leave", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Pause a job; pausing it again is fine."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_PAUSE,
            path={"job": job},
            body={"reason": reason, "until": until, "running": running},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def resume(
        self,
        job: str,
        *,
        missed: Literal["skip", "run_latest", "run_all"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Resume a paused job."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_RESUME,
            path={"job": job},
            body={"missed": missed},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def cancel(
        self,
        job: str,
        *,
        reason: str | Unset = UNSET,
        running: Literal["leave", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """End a job for good."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_CANCEL,
            path={"job": job},
            body={"reason": reason, "running": running},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def run(
        self,
        job: str,
        *,
        payload_override: Any | Unset = UNSET,
        priority: int | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        scheduled_for: str | Unset | None = UNSET,
        overlap: Literal["inherit", "allow"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run | betimes.wire.runs.RunMade:
        """Run a job now, beside its schedule."""
        answer: betimes.wire.runs.Run | betimes.wire.runs.RunMade = self._caller.call(
            table.JOBS_RUN,
            path={"job": job},
            body={
                "payload_override": payload_override,
                "priority": priority,
                "at": at,
                "scheduled_for": scheduled_for,
                "overlap": overlap,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def skip_next(
        self,
        job: str,
        *,
        count: int | Unset = UNSET,
        until: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Skipped:
        """Skip the next fires."""
        answer: betimes.wire.jobs.Skipped = self._caller.call(
            table.JOBS_SKIP_NEXT,
            path={"job": job},
            body={"count": count, "until": until},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def create_many(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.jobs.NewJob | collections.abc.Mapping[str, Any]
        ],
        mode: Literal["atomic", "independent"] | Unset = UNSET,
        validate_only: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.MadeJobs:
        """Create up to 1000 jobs, all or none, or each for itself."""
        answer: betimes.wire.jobs.MadeJobs = self._caller.call(
            table.JOBS_CREATE_MANY,
            query={"validate_only": validate_only},
            body={"items": items, "mode": mode},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def revisions(
        self,
        job: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.revisions.RevisionList:
        """What a job was and is, newest first."""
        answer: betimes.wire.revisions.RevisionList = self._caller.call(
            table.JOBS_REVISIONS,
            path={"job": job},
            timeout=request_timeout,
        )
        return answer

    def revision(
        self,
        job: str,
        revision: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.revisions.Revision:
        """Read one definition of a job, as it was or is."""
        answer: betimes.wire.revisions.Revision = self._caller.call(
            table.JOBS_REVISION,
            path={"job": job, "revision": revision},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    def rollback(
        self,
        job: str,
        *,
        revision: int,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Bring an old definition back, as a new revision."""
        answer: betimes.wire.jobs.Job = self._caller.call(
            table.JOBS_ROLLBACK,
            path={"job": job},
            body={"revision": revision},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def bulk(
        self,
        *,
        action: Literal["pause", "resume", "cancel", "delete", "set"],
        filter: betimes.wire.jobs_bulk.JobChoice | collections.abc.Mapping[str, Any],
        set_: betimes.wire.jobs_bulk.SetJob
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        reason: str | Unset = UNSET,
        rate_per_second: float | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Pause, resume, cancel, delete or change what a filter means, as an operation."""
        answer: betimes.wire.operations.Matched | betimes.wire.operations.Operation = (
            self._caller.call(
                table.JOBS_BULK,
                body={
                    "action": action,
                    "filter": filter,
                    "set": set_,
                    "reason": reason,
                    "rate_per_second": rate_per_second,
                    "dry_run": dry_run,
                    "confirm_count": confirm_count,
                    "operation_id": operation_id,
                },
                if_match=if_match,
                idempotency_key=idempotency_key,
                timeout=request_timeout,
            )
        )
        return answer

    def apply(
        self,
        *,
        jobs: collections.abc.Sequence[
            betimes.wire.jobs.NewJob | collections.abc.Mapping[str, Any]
        ],
        selector: betimes.wire.apply.Selector | collections.abc.Mapping[str, Any] | Unset = UNSET,
        prune: bool | Unset = UNSET,
        adopt: bool | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.apply.Applied:
        """Bring a declared set of jobs about: create, change, and with prune delete."""
        answer: betimes.wire.apply.Applied = self._caller.call(
            table.JOBS_APPLY,
            body={
                "jobs": jobs,
                "selector": selector,
                "prune": prune,
                "adopt": adopt,
                "dry_run": dry_run,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def next(
        self,
        job: str,
        *,
        count: int | Unset = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        excluded: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Preview:
        """The next fires of a job."""
        answer: betimes.wire.schedules.Preview = self._caller.call(
            table.JOBS_NEXT,
            path={"job": job},
            query={"count": count, "from": from_, "to": to, "excluded": excluded},
            timeout=request_timeout,
        )
        return answer

    def backfill(
        self,
        job: str,
        *,
        from_: str,
        to: str,
        max_runs: int | Unset = UNSET,
        order: Literal["oldest", "newest"] | Unset = UNSET,
        only_missing: bool | Unset = UNSET,
        rate_per_second: float | Unset = UNSET,
        overlap: Literal["inherit", "allow"] | Unset = UNSET,
        max_concurrency: int | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Backfilled:
        """Run the fires of a span in the past after all, at a bounded pace."""
        answer: betimes.wire.schedules.Backfilled = self._caller.call(
            table.JOBS_BACKFILL,
            path={"job": job},
            body={
                "from": from_,
                "to": to,
                "max_runs": max_runs,
                "order": order,
                "only_missing": only_missing,
                "rate_per_second": rate_per_second,
                "overlap": overlap,
                "max_concurrency": max_concurrency,
                "dry_run": dry_run,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def runs(
        self,
        job: str,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        state: builtins.list[
            Literal[
                "scheduled",
                "queued",
                "running",
                "retry_wait",
                "succeeded",
                "dead",
                "cancelled",
                "skipped",
                "expired",
                "missed",
                "failed",
            ]
        ]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        trigger: builtins.list[
            Literal[
                "schedule", "manual", "api", "backfill", "retry", "redrive", "workflow", "compat"
            ]
        ]
        | Unset = UNSET,
        worker: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        due_after: str | Unset | None = UNSET,
        due_before: str | Unset | None = UNSET,
        scheduled_after: str | Unset | None = UNSET,
        scheduled_before: str | Unset | None = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        min_lag: str | float | Unset | None = UNSET,
        error_fingerprint: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.runs.Run]:
        """List the runs of a job, latest due first."""
        answer: Pages[betimes.wire.runs.Run] = self._caller.pages(
            table.JOBS_RUNS,
            path={"job": job},
            query={
                "limit": limit,
                "fields": fields,
                "state": state,
                "queue": queue,
                "handler": handler,
                "trigger": trigger,
                "worker": worker,
                "tag": tag,
                "due_after": due_after,
                "due_before": due_before,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "min_lag": min_lag,
                "error_fingerprint": error_fingerprint,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    def stats(
        self,
        job: str,
        *,
        window: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.JobStats:
        """What became of the runs of a job, and how long they waited and took."""
        answer: betimes.wire.insights.JobStats = self._caller.call(
            table.JOBS_STATS,
            path={"job": job},
            query={"window": window},
            timeout=request_timeout,
        )
        return answer

    def explain(
        self,
        job: str,
        *,
        at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a job fires or does not."""
        answer: betimes.wire.explain.Explanation = self._caller.call(
            table.JOBS_EXPLAIN,
            path={"job": job},
            query={"at": at},
            timeout=request_timeout,
        )
        return answer


class Search:
    """Operations of search."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def find(
        self,
        *,
        q: str,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.FoundList:
        """A job or a run by its id, jobs by name or tag, dead runs by error or tag."""
        answer: betimes.wire.queues.FoundList = self._caller.call(
            table.SEARCH_FIND,
            query={"q": q, "limit": limit},
            timeout=request_timeout,
        )
        return answer


class Import:
    """Operations of import."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def crontab(
        self,
        *,
        content: bytes,
        dry_run: bool | Unset = UNSET,
        timezone: str | Unset | None = UNSET,
        system: bool | Unset = UNSET,
        user: str | Unset | None = UNSET,
        flavour: Literal["debian", "cronie"] | Unset | None = UNSET,
        handler: str | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        prefix: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Make jobs of the lines of a crontab."""
        answer: betimes.wire.queues.Imported = self._caller.call(
            table.IMPORT_CRONTAB,
            query={
                "dry_run": dry_run,
                "timezone": timezone,
                "system": system,
                "user": user,
                "flavour": flavour,
                "handler": handler,
                "queue": queue,
                "prefix": prefix,
            },
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def kubernetes(
        self,
        *,
        items: builtins.list[dict[str, Any]],
        kind: str | Unset = UNSET,
        api_version: str | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        timezone: str | Unset | None = UNSET,
        handler: str | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Make jobs of the CronJobs of a Kubernetes cluster."""
        answer: betimes.wire.queues.Imported = self._caller.call(
            table.IMPORT_KUBERNETES,
            query={"dry_run": dry_run, "timezone": timezone, "handler": handler, "queue": queue},
            body={"items": items, "kind": kind, "apiVersion": api_version, "metadata": metadata},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def betimes(
        self,
        *,
        format: str,
        jobs: builtins.list[dict[str, Any]],
        calendars: collections.abc.Sequence[
            betimes.wire.queues.CalendarText | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        exported_at: str | Unset | None = UNSET,
        next_cursor: str | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Create the calendars and jobs of an export."""
        answer: betimes.wire.queues.Imported = self._caller.call(
            table.IMPORT_BETIMES,
            query={"dry_run": dry_run},
            body={
                "format": format,
                "jobs": jobs,
                "calendars": calendars,
                "exported_at": exported_at,
                "next_cursor": next_cursor,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class Export:
    """Operations of export."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def read(
        self,
        *,
        format: Literal["betimes", "crontab", "kubernetes"] | Unset = UNSET,
        group: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        cursor: str | Unset | None = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Exported:
        """Definitions of jobs, and the calendars they name, in our own format."""
        answer: betimes.wire.queues.Exported = self._caller.call(
            table.EXPORT_READ,
            query={"format": format, "group": group, "tag": tag, "cursor": cursor, "limit": limit},
            timeout=request_timeout,
        )
        return answer


class Schedules:
    """Operations of schedules."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def preview(
        self,
        *,
        schedule: str | dict[str, Any],
        timezone: str | Unset | None = UNSET,
        from_: str | Unset | None = UNSET,
        count: int | Unset = UNSET,
        until: str | Unset | None = UNSET,
        horizon: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Preview:
        """The next fires of a schedule, and what may surprise about it."""
        answer: betimes.wire.schedules.Preview = self._caller.call(
            table.SCHEDULES_PREVIEW,
            body={
                "schedule": schedule,
                "timezone": timezone,
                "from": from_,
                "count": count,
                "until": until,
                "horizon": horizon,
            },
            timeout=request_timeout,
        )
        return answer

    def parse(
        self,
        *,
        text: str,
        timezone: str | Unset | None = UNSET,
        locale: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Parsed:
        """What a line of words means as a schedule."""
        answer: betimes.wire.schedules.Parsed = self._caller.call(
            table.SCHEDULES_PARSE,
            body={"text": text, "timezone": timezone, "locale": locale},
            timeout=request_timeout,
        )
        return answer


class Upcoming:
    """Operations of upcoming."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        within: str | float | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        include: builtins.list[Literal["fires", "runs", "retries"]] | Unset = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.schedules.Soon]:
        """What is due soon: runs, those that are tried again, and fires that become some."""
        answer: Pages[betimes.wire.schedules.Soon] = self._caller.pages(
            table.UPCOMING_LIST,
            query={
                "within": within,
                "queue": queue,
                "job": job,
                "include": include,
                "limit": limit,
            },
            timeout=request_timeout,
        )
        return answer


class Calendars:
    """Operations of calendars."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.calendars.Calendar]:
        """List calendars by name."""
        answer: Pages[betimes.wire.calendars.Calendar] = self._caller.pages(
            table.CALENDARS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        calendar: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.calendars.Calendar:
        """Read one calendar."""
        answer: betimes.wire.calendars.Calendar = self._caller.call(
            table.CALENDARS_GET,
            path={"calendar": calendar},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        calendar: str,
        *,
        dates: builtins.list[str] | Unset = UNSET,
        ranges: builtins.list[str] | Unset = UNSET,
        weekdays: builtins.list[Literal["sun", "mon", "tue", "wed", "thu", "fri", "sat"]]
        | Unset = UNSET,
        ics: str | Unset | None = UNSET,
        description: str | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.calendars.Calendar:
        """Make or replace a calendar; jobs that use it are planned anew, as an operation."""
        answer: betimes.wire.calendars.Calendar = self._caller.call(
            table.CALENDARS_PUT,
            path={"calendar": calendar},
            query={"force": force},
            body={
                "dates": dates,
                "ranges": ranges,
                "weekdays": weekdays,
                "ics": ics,
                "description": description,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        calendar: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a calendar that no job uses."""
        answer: None = self._caller.call(
            table.CALENDARS_DELETE,
            path={"calendar": calendar},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Targets:
    """Operations of targets."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def reset(
        self,
        *,
        origin: str,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.targets.Origin:
        """Close the breaker of an origin by hand; it is asked for little at first."""
        answer: betimes.wire.targets.Origin = self._caller.call(
            table.TARGETS_RESET,
            body={"origin": origin},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.targets.Origin]:
        """List the origins that jobs call, with their breakers and limits."""
        answer: Pages[betimes.wire.targets.Origin] = self._caller.pages(
            table.TARGETS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def signing_secret(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.targets.SigningSecret:
        """Read what requests to targets are signed with."""
        answer: betimes.wire.targets.SigningSecret = self._caller.call(
            table.TARGETS_SIGNING_SECRET,
            timeout=request_timeout,
        )
        return answer


class Secrets:
    """Operations of secrets."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.secrets.Secret]:
        """List the names of secrets."""
        answer: Pages[betimes.wire.secrets.Secret] = self._caller.pages(
            table.SECRETS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        secret: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.SecretShown:
        """When and by whom a secret was written; never what it is."""
        answer: betimes.wire.secrets.SecretShown = self._caller.call(
            table.SECRETS_GET,
            path={"secret": secret},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        secret: str,
        *,
        value: str | Unset | None = UNSET,
        value_base64: str | Unset | None = UNSET,
        keep: int | Unset = UNSET,
        origins: builtins.list[str] | Unset | None = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.Secret:
        """Write a secret, as a new version if there is one."""
        answer: betimes.wire.secrets.Secret = self._caller.call(
            table.SECRETS_PUT,
            path={"secret": secret},
            body={"value": value, "value_base64": value_base64, "keep": keep, "origins": origins},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def bind(
        self,
        secret: str,
        *,
        origins: builtins.list[str],
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.Secret:
        """Say where a secret may be sent."""
        answer: betimes.wire.secrets.Secret = self._caller.call(
            table.SECRETS_BIND,
            path={"secret": secret},
            body={"origins": origins},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        secret: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a secret with all its versions."""
        answer: None = self._caller.call(
            table.SECRETS_DELETE,
            path={"secret": secret},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def delete_version(
        self,
        secret: str,
        version: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget one version of a secret."""
        answer: None = self._caller.call(
            table.SECRETS_DELETE_VERSION,
            path={"secret": secret, "version": version},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Runs:
    """Operations of runs."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        handler: str | Unset | None = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        delay: str | float | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade | betimes.wire.runs.Run:
        """Enqueue a run without a job."""
        answer: betimes.wire.runs.RunMade | betimes.wire.runs.Run = self._caller.call(
            table.RUNS_CREATE,
            body={
                "handler": handler,
                "target": target,
                "payload": payload,
                "payload_ref": payload_ref,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "delay": delay,
                "at": at,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "tags": tags,
                "notify": notify,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def create_many(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.runs.NewRun | collections.abc.Mapping[str, Any]
        ],
        mode: Literal["atomic", "independent"] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunsMade | betimes.wire.runs.RunsTold:
        """Enqueue up to 1000 runs, all or none, or each for itself."""
        answer: betimes.wire.runs.RunsMade | betimes.wire.runs.RunsTold = self._caller.call(
            table.RUNS_CREATE_MANY,
            body={"items": items, "mode": mode},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        state: builtins.list[
            Literal[
                "scheduled",
                "queued",
                "running",
                "retry_wait",
                "succeeded",
                "dead",
                "cancelled",
                "skipped",
                "expired",
                "missed",
                "failed",
            ]
        ]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        trigger: builtins.list[
            Literal[
                "schedule", "manual", "api", "backfill", "retry", "redrive", "workflow", "compat"
            ]
        ]
        | Unset = UNSET,
        worker: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        due_after: str | Unset | None = UNSET,
        due_before: str | Unset | None = UNSET,
        scheduled_after: str | Unset | None = UNSET,
        scheduled_before: str | Unset | None = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        min_lag: str | float | Unset | None = UNSET,
        error_fingerprint: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        workflow_run: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.runs.Run]:
        """List runs, latest due first."""
        answer: Pages[betimes.wire.runs.Run] = self._caller.pages(
            table.RUNS_LIST,
            query={
                "limit": limit,
                "fields": fields,
                "state": state,
                "queue": queue,
                "handler": handler,
                "trigger": trigger,
                "worker": worker,
                "tag": tag,
                "due_after": due_after,
                "due_before": due_before,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "min_lag": min_lag,
                "error_fingerprint": error_fingerprint,
                "q": q,
                "count": count,
                "job": job,
                "workflow_run": workflow_run,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        run: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        include: builtins.list[Literal["attempts"]] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Read one run."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_GET,
            path={"run": run},
            query={"view": view, "fields": fields, "include": include},
            timeout=request_timeout,
        )
        return answer

    def wait(
        self,
        run: str,
        *,
        timeout: float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Read one run when it has ended, or when patience has."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_WAIT,
            path={"run": run},
            query={"timeout": timeout},
            timeout=request_timeout,
        )
        return answer

    def attempts(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.runs.Attempt]:
        """List the attempts of a run."""
        answer: Pages[betimes.wire.runs.Attempt] = self._caller.pages(
            table.RUNS_ATTEMPTS,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    def attempt(
        self,
        run: str,
        number: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Attempt:
        """Read one attempt of a run."""
        answer: betimes.wire.runs.Attempt = self._caller.call(
            table.RUNS_ATTEMPT,
            path={"run": run, "number": number},
            timeout=request_timeout,
        )
        return answer

    def timeline(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Timeline:
        """What happened to a run, in order."""
        answer: betimes.wire.runs.Timeline = self._caller.call(
            table.RUNS_TIMELINE,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    def payload(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """What a run was given, as it is."""
        answer: bytes = self._caller.call(
            table.RUNS_PAYLOAD,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    def result(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """What a run has returned, as it is."""
        answer: bytes = self._caller.call(
            table.RUNS_RESULT,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    def cancel(
        self,
        run: str,
        *,
        reason: str | Unset = UNSET,
        grace: str | float | Unset | None = UNSET,
        force: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """End a run; one under way is told with its worker's next heartbeat."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_CANCEL,
            path={"run": run},
            body={"reason": reason, "grace": grace, "force": force},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def cancel_by_key(
        self,
        *,
        dedupe_key: str,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """End the run that holds a dedupe key."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_CANCEL_BY_KEY,
            body={"dedupe_key": dedupe_key, "reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def retry(
        self,
        run: str,
        *,
        reset_attempts: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """One more try now, in the same run."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_RETRY,
            path={"run": run},
            body={"reset_attempts": reset_attempts},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def replay(
        self,
        run: str,
        *,
        payload_override: Any | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade:
        """Do it over, as a new run."""
        answer: betimes.wire.runs.RunMade = self._caller.call(
            table.RUNS_REPLAY,
            path={"run": run},
            body={"payload_override": payload_override},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        run: str,
        *,
        due_at: str | Unset | None = UNSET,
        queue: str | Unset | None = UNSET,
        priority: int | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Give a run that waits another time, queue or priority."""
        answer: betimes.wire.runs.Run = self._caller.call(
            table.RUNS_UPDATE,
            path={"run": run},
            body={"due_at": due_at, "queue": queue, "priority": priority},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def bulk(
        self,
        *,
        action: Literal["cancel", "retry", "replay", "set_priority"],
        filter: betimes.wire.operations.RunChoice
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        ids: builtins.list[str] | Unset | None = UNSET,
        reason: str | Unset = UNSET,
        priority: int | Unset | None = UNSET,
        rate_per_second: float | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Cancel, retry, replay or reprioritise many runs, as an operation."""
        answer: betimes.wire.operations.Matched | betimes.wire.operations.Operation = (
            self._caller.call(
                table.RUNS_BULK,
                body={
                    "action": action,
                    "filter": filter,
                    "ids": ids,
                    "reason": reason,
                    "priority": priority,
                    "rate_per_second": rate_per_second,
                    "dry_run": dry_run,
                    "confirm_count": confirm_count,
                    "operation_id": operation_id,
                },
                idempotency_key=idempotency_key,
                timeout=request_timeout,
            )
        )
        return answer

    def enqueue_body(
        self,
        handler: str,
        *,
        content: bytes,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade | betimes.wire.runs.Run:
        """Enqueue a run whose payload is the body; delay, queue and priority are headers."""
        answer: betimes.wire.runs.RunMade | betimes.wire.runs.Run = self._caller.call(
            table.RUNS_ENQUEUE_BODY,
            path={"handler": handler},
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def logs(
        self,
        run: str,
        *,
        after: int | Unset = UNSET,
        attempt: int | Unset | None = UNSET,
        level: builtins.list[Literal["debug", "info", "warning", "error"]] | Unset = UNSET,
        tail: int | Unset | None = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Log:
        """Lines of the log of a run, in order."""
        answer: betimes.wire.workers.Log = self._caller.call(
            table.RUNS_LOGS,
            path={"run": run},
            query={
                "after": after,
                "attempt": attempt,
                "level": level,
                "tail": tail,
                "limit": limit,
            },
            timeout=request_timeout,
        )
        return answer

    def explain(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a run waits, or what ended it."""
        answer: betimes.wire.explain.Explanation = self._caller.call(
            table.RUNS_EXPLAIN,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer


class Workflows:
    """Operations of workflows."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.workflows.Workflow]:
        """List workflows by name, each in its newest version."""
        answer: Pages[betimes.wire.workflows.Workflow] = self._caller.pages(
            table.WORKFLOWS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        workflow: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Read the newest version of a workflow."""
        answer: betimes.wire.workflows.Workflow = self._caller.call(
            table.WORKFLOWS_GET,
            path={"workflow": workflow},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        workflow: str,
        *,
        nodes: dict[str, betimes.wire.workflows.NewNode],
        failure_policy: Literal["fail_fast", "continue"] | Unset = UNSET,
        timeout: str | float | Unset | None = UNSET,
        input_schema: dict[str, Any] | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Keep a workflow; what differs from its newest version is the next one."""
        answer: betimes.wire.workflows.Workflow = self._caller.call(
            table.WORKFLOWS_PUT,
            path={"workflow": workflow},
            body={
                "nodes": nodes,
                "failure_policy": failure_policy,
                "timeout": timeout,
                "input_schema": input_schema,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        workflow: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a workflow that no job starts; what runs of it goes on."""
        answer: None = self._caller.call(
            table.WORKFLOWS_DELETE,
            path={"workflow": workflow},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def versions(
        self,
        workflow: str,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.workflows.Workflow]:
        """List the versions of a workflow, newest first."""
        answer: Pages[betimes.wire.workflows.Workflow] = self._caller.pages(
            table.WORKFLOWS_VERSIONS,
            path={"workflow": workflow},
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def version(
        self,
        workflow: str,
        version: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Read one version of a workflow."""
        answer: betimes.wire.workflows.Workflow = self._caller.call(
            table.WORKFLOWS_VERSION,
            path={"workflow": workflow, "version": version},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    def start(
        self,
        workflow: str,
        *,
        input: Any | Unset = UNSET,
        version: int | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Start a workflow."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOWS_START,
            path={"workflow": workflow},
            body={"input": input, "version": version, "tags": tags},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class WorkflowRuns:
    """Operations of workflow_runs."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        workflow: str | Unset | None = UNSET,
        state: builtins.list[Literal["running", "succeeded", "failed", "cancelled"]]
        | Unset = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.workflows.WorkflowRun]:
        """List workflow runs, newest first."""
        answer: Pages[betimes.wire.workflows.WorkflowRun] = self._caller.pages(
            table.WORKFLOW_RUNS_LIST,
            query={"workflow": workflow, "state": state, "limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        workflow_run: str,
        *,
        include: builtins.list[Literal["graph"]] | Unset = UNSET,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Read one workflow run; with `include=graph` its nodes, their times and the critical path."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_GET,
            path={"workflow_run": workflow_run},
            query={"include": include, "view": view},
            timeout=request_timeout,
        )
        return answer

    def cancel(
        self,
        workflow_run: str,
        *,
        reason: str | Unset = UNSET,
        cleanup: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Stop a workflow run; what cleans up still runs unless that is not wanted."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_CANCEL,
            path={"workflow_run": workflow_run},
            body={"reason": reason, "cleanup": cleanup},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def retry(
        self,
        workflow_run: str,
        *,
        origin: Literal["failed", "node", "start"] | Unset = UNSET,
        node: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Do a workflow run again from where it failed, from a node, or from its start."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_RETRY,
            path={"workflow_run": workflow_run},
            body={"from": origin, "node": node},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def skip(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Skip a node that has not started."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_SKIP,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def approve(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Open the gate of a node that waits for an approval."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_APPROVE,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def signal(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        data: Any | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Open the gate of a node that waits for a signal, with what it is told."""
        answer: betimes.wire.workflows.WorkflowRun = self._caller.call(
            table.WORKFLOW_RUNS_SIGNAL,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"data": data},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class Audit:
    """Operations of audit."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def export(
        self,
        *,
        since: str | Unset | None = UNSET,
        until: str | Unset | None = UNSET,
        action: str | Unset | None = UNSET,
        resource: str | Unset | None = UNSET,
        actor: str | Unset | None = UNSET,
        format: Literal["jsonl", "csv"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> bytes:
        """Every act of a span, as lines of JSON or as a table."""
        answer: bytes = self._caller.call(
            table.AUDIT_EXPORT,
            body={
                "since": since,
                "until": until,
                "action": action,
                "resource": resource,
                "actor": actor,
                "format": format,
            },
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        action: str | Unset | None = UNSET,
        resource: str | Unset | None = UNSET,
        actor: str | Unset | None = UNSET,
        since: str | Unset | None = UNSET,
        until: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.more.AuditEntry]:
        """List what was done, newest first."""
        answer: Pages[betimes.wire.more.AuditEntry] = self._caller.pages(
            table.AUDIT_LIST,
            query={
                "limit": limit,
                "action": action,
                "resource": resource,
                "actor": actor,
                "since": since,
                "until": until,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        act: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.AuditEntry:
        """Read one act."""
        answer: betimes.wire.more.AuditEntry = self._caller.call(
            table.AUDIT_GET,
            path={"act": act},
            timeout=request_timeout,
        )
        return answer

    def verify(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.Verified:
        """Recompute the chains of the audit and tell whether they hold."""
        answer: betimes.wire.more.Verified = self._caller.call(
            table.AUDIT_VERIFY,
            timeout=request_timeout,
        )
        return answer


class Catchups:
    """Operations of catchups."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.catchups.Catchup]:
        """List the times the tenant had to catch up, newest first."""
        answer: Pages[betimes.wire.catchups.Catchup] = self._caller.pages(
            table.CATCHUPS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        catchup: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Read one catch-up: how much was missed, and what of it waits for approval."""
        answer: betimes.wire.catchups.Catchup = self._caller.call(
            table.CATCHUPS_GET,
            path={"catchup": catchup},
            timeout=request_timeout,
        )
        return answer

    def approve(
        self,
        catchup: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Let what waits run, at the pace of the tenant."""
        answer: betimes.wire.catchups.Catchup = self._caller.call(
            table.CATCHUPS_APPROVE,
            path={"catchup": catchup},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def drop(
        self,
        catchup: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Drop what waits: none of it runs, every fire of it is recorded."""
        answer: betimes.wire.catchups.Catchup = self._caller.call(
            table.CATCHUPS_DROP,
            path={"catchup": catchup},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class DeadLetters:
    """Operations of dead_letters."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: Literal["open", "redriven", "discarded"] | Unset = UNSET,
        fingerprint: str | Unset | None = UNSET,
        group: str | Unset | None = UNSET,
        queue: str | Unset | None = UNSET,
        handler: str | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        error: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.more.DeadLetter]:
        """List dead letters, oldest death first."""
        answer: Pages[betimes.wire.more.DeadLetter] = self._caller.pages(
            table.DEAD_LETTERS_LIST,
            query={
                "limit": limit,
                "state": state,
                "fingerprint": fingerprint,
                "group": group,
                "queue": queue,
                "handler": handler,
                "job": job,
                "tag": tag,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "error": error,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    def groups(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.LetterGroups:
        """Open dead letters by what they died of."""
        answer: betimes.wire.more.LetterGroups = self._caller.call(
            table.DEAD_LETTERS_GROUPS,
            timeout=request_timeout,
        )
        return answer

    def bulk(
        self,
        *,
        action: Literal["redrive", "discard"],
        filter: betimes.wire.more.LetterChoice | collections.abc.Mapping[str, Any],
        rate_per_second: float | Unset | None = UNSET,
        reset_attempts: bool | Unset = UNSET,
        reason: str | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Redrive or discard what a filter means, as an operation."""
        answer: betimes.wire.operations.Matched | betimes.wire.operations.Operation = (
            self._caller.call(
                table.DEAD_LETTERS_BULK,
                body={
                    "action": action,
                    "filter": filter,
                    "rate_per_second": rate_per_second,
                    "reset_attempts": reset_attempts,
                    "reason": reason,
                    "dry_run": dry_run,
                    "confirm_count": confirm_count,
                    "operation_id": operation_id,
                },
                idempotency_key=idempotency_key,
                timeout=request_timeout,
            )
        )
        return answer

    def get(
        self,
        letter: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Read one dead letter with its attempts."""
        answer: betimes.wire.more.DeadLetter = self._caller.call(
            table.DEAD_LETTERS_GET,
            path={"letter": letter},
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        letter: str,
        *,
        note: str | Unset | None = UNSET,
        assignee: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Write a note, or give the letter to somebody."""
        answer: betimes.wire.more.DeadLetter = self._caller.call(
            table.DEAD_LETTERS_UPDATE,
            path={"letter": letter},
            body={"note": note, "assignee": assignee},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def redrive(
        self,
        letter: str,
        *,
        payload_override: Any | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        reset_attempts: bool | Unset = UNSET,
        delay: str | float | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade:
        """Give a dead run another life."""
        answer: betimes.wire.runs.RunMade = self._caller.call(
            table.DEAD_LETTERS_REDRIVE,
            path={"letter": letter},
            body={
                "payload_override": payload_override,
                "queue": queue,
                "reset_attempts": reset_attempts,
                "delay": delay,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def discard(
        self,
        letter: str,
        *,
        reason: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Close a letter for good."""
        answer: betimes.wire.more.DeadLetter = self._caller.call(
            table.DEAD_LETTERS_DISCARD,
            path={"letter": letter},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class Queues:
    """Operations of queues."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.queues.Queue]:
        """List queues that have settings or work."""
        answer: Pages[betimes.wire.queues.Queue] = self._caller.pages(
            table.QUEUES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        queue: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Read one queue."""
        answer: betimes.wire.queues.Queue = self._caller.call(
            table.QUEUES_GET,
            path={"queue": queue},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        queue: str,
        *,
        max_concurrency: int | Unset | None = UNSET,
        per_key_concurrency: int | Unset | None = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        per_key_rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        weight: float | Unset = UNSET,
        fairness: Literal["tenant", "key", "none"] | Unset = UNSET,
        default_retry: betimes.wire.jobs.Retry
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        dead_letter: bool | Unset = UNSET,
        paused: bool | Unset | None = UNSET,
        description: str | Unset = UNSET,
        labels: dict[str, str] | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Store the settings of a queue."""
        answer: betimes.wire.queues.Queue = self._caller.call(
            table.QUEUES_PUT,
            path={"queue": queue},
            body={
                "max_concurrency": max_concurrency,
                "per_key_concurrency": per_key_concurrency,
                "rate": rate,
                "per_key_rate": per_key_rate,
                "weight": weight,
                "fairness": fairness,
                "default_retry": default_retry,
                "retention": retention,
                "dead_letter": dead_letter,
                "paused": paused,
                "description": description,
                "labels": labels,
            },
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        queue: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget the settings of an empty queue."""
        answer: None = self._caller.call(
            table.QUEUES_DELETE,
            path={"queue": queue},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def pause(
        self,
        queue: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Lease nothing of a queue until it is resumed."""
        answer: betimes.wire.queues.Queue = self._caller.call(
            table.QUEUES_PAUSE,
            path={"queue": queue},
            body={"reason": reason, "until": until},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def resume(
        self,
        queue: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Go on with a paused queue."""
        answer: betimes.wire.queues.Queue = self._caller.call(
            table.QUEUES_RESUME,
            path={"queue": queue},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def drain(
        self,
        queue: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Accept nothing new for a queue, and finish what is there."""
        answer: betimes.wire.queues.Queue = self._caller.call(
            table.QUEUES_DRAIN,
            path={"queue": queue},
            body={"reason": reason, "until": until},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def purge(
        self,
        queue: str,
        *,
        states: builtins.list[Literal["scheduled", "queued", "retry_wait"]] | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Cancel what waits in a queue, as an operation."""
        answer: betimes.wire.operations.Matched | betimes.wire.operations.Operation = (
            self._caller.call(
                table.QUEUES_PURGE,
                path={"queue": queue},
                body={
                    "states": states,
                    "confirm_count": confirm_count,
                    "dry_run": dry_run,
                    "operation_id": operation_id,
                },
                idempotency_key=idempotency_key,
                timeout=request_timeout,
            )
        )
        return answer

    def stats(
        self,
        queue: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.QueueStats:
        """What waits in a queue and is under way."""
        answer: betimes.wire.queues.QueueStats = self._caller.call(
            table.QUEUES_STATS,
            path={"queue": queue},
            timeout=request_timeout,
        )
        return answer

    def series(
        self,
        queue: str,
        *,
        metric: Literal["due", "succeeded", "dead", "run_seconds", "lag_p95_ms"] | Unset = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.Series:
        """Numbers of a queue over time."""
        answer: betimes.wire.insights.Series = self._caller.call(
            table.QUEUES_SERIES,
            path={"queue": queue},
            query={"metric": metric, "from": from_, "to": to, "step": step},
            timeout=request_timeout,
        )
        return answer

    def keys(
        self,
        queue: str,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.QueueKeys:
        """The busiest concurrency keys of a queue."""
        answer: betimes.wire.insights.QueueKeys = self._caller.call(
            table.QUEUES_KEYS,
            path={"queue": queue},
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer


class RateLimits:
    """Operations of rate_limits."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.queues.KeyRate]:
        """List the rate limit keys about which something was said."""
        answer: Pages[betimes.wire.queues.KeyRate] = self._caller.pages(
            table.RATE_LIMITS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        key: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.KeyRate:
        """Read the rate of one key."""
        answer: betimes.wire.queues.KeyRate = self._caller.call(
            table.RATE_LIMITS_GET,
            path={"key": key},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        key: str,
        *,
        limit: int,
        per: str | float | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.KeyRate:
        """Say how many runs of a rate limit key may start in a time."""
        answer: betimes.wire.queues.KeyRate = self._caller.call(
            table.RATE_LIMITS_PUT,
            path={"key": key},
            body={"limit": limit, "per": per},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        key: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Say nothing about a rate limit key any more."""
        answer: None = self._caller.call(
            table.RATE_LIMITS_DELETE,
            path={"key": key},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Usage:
    """Operations of usage."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def read(
        self,
        *,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        group_by: Literal["day", "queue", "job"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.Usage:
        """What the tenant has used in a span, by day, queue or job."""
        answer: betimes.wire.insights.Usage = self._caller.call(
            table.USAGE_READ,
            query={"from": from_, "to": to, "group_by": group_by},
            timeout=request_timeout,
        )
        return answer


class Blobs:
    """Operations of blobs."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        content: bytes,
        ttl: str | float | Unset | None = UNSET,
        retention: Literal["brief", "standard", "long", "archive"] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Blob:
        """Keep a body as it is, to be referred to."""
        answer: betimes.wire.queues.Blob = self._caller.call(
            table.BLOBS_CREATE,
            query={"ttl": ttl, "retention": retention},
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        blob: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """A blob as it was given."""
        answer: bytes = self._caller.call(
            table.BLOBS_GET,
            path={"blob": blob},
            timeout=request_timeout,
        )
        return answer

    def grant(
        self,
        blob: str,
        *,
        expires_in: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Grant:
        """Make a link that reads one blob until it expires, without a key."""
        answer: betimes.wire.queues.Grant = self._caller.call(
            table.BLOBS_GRANT,
            path={"blob": blob},
            body={"expires_in": expires_in},
            timeout=request_timeout,
        )
        return answer

    def read_granted(
        self,
        grant: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """The blob of a link."""
        answer: bytes = self._caller.call(
            table.BLOBS_READ_GRANTED,
            path={"grant": grant},
            timeout=request_timeout,
        )
        return answer


class Workers:
    """Operations of workers."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def register(
        self,
        *,
        name: str,
        queues: builtins.list[str] | Unset = UNSET,
        handlers: collections.abc.Sequence[
            betimes.wire.workers.DeclaredHandler | collections.abc.Mapping[str, Any] | str
        ]
        | Unset = UNSET,
        slots: int | Unset = UNSET,
        version: str | Unset = UNSET,
        host: str | Unset = UNSET,
        pid: int | Unset | None = UNSET,
        sdk: dict[str, Any] | Unset = UNSET,
        labels: dict[str, str] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Registered:
        """Make a worker known."""
        answer: betimes.wire.workers.Registered = self._caller.call(
            table.WORKERS_REGISTER,
            body={
                "name": name,
                "queues": queues,
                "handlers": handlers,
                "slots": slots,
                "version": version,
                "host": host,
                "pid": pid,
                "sdk": sdk,
                "labels": labels,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.workers.Worker]:
        """List workers."""
        answer: Pages[betimes.wire.workers.Worker] = self._caller.pages(
            table.WORKERS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Worker:
        """Read one worker."""
        answer: betimes.wire.workers.Worker = self._caller.call(
            table.WORKERS_GET,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        worker: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a worker; what it holds is given to others at once."""
        answer: None = self._caller.call(
            table.WORKERS_DELETE,
            path={"worker": worker},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def drain(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Worker:
        """Tell a worker to finish; it hears of it with its next heartbeat."""
        answer: betimes.wire.workers.Worker = self._caller.call(
            table.WORKERS_DRAIN,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    def leave(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> None:
        """A worker goes; what it still holds comes back when its leases run out."""
        answer: None = self._caller.call(
            table.WORKERS_LEAVE,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    def heartbeat(
        self,
        worker: str,
        *,
        running: collections.abc.Sequence[
            betimes.wire.workers.RunningLease | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        parcels: collections.abc.Sequence[
            betimes.wire.workers.RunningParcel | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        busy: int | Unset | None = UNSET,
        free_slots: int | Unset | None = UNSET,
        state: Literal["ok", "draining"] | Unset = UNSET,
        rss: int | Unset | None = UNSET,
        cpu: float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.HeartbeatAnswer:
        """A sign of life: renews every lease it names."""
        answer: betimes.wire.workers.HeartbeatAnswer = self._caller.call(
            table.WORKERS_HEARTBEAT,
            path={"worker": worker},
            body={
                "running": running,
                "parcels": parcels,
                "busy": busy,
                "free_slots": free_slots,
                "state": state,
                "rss": rss,
                "cpu": cpu,
            },
            timeout=request_timeout,
        )
        return answer

    def lease_parcels(
        self,
        worker: str,
        *,
        max: int | Unset = UNSET,
        wait: float | Unset = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        handlers: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.parcels.LeasedParcels:
        """Whole parcels of work, each under one lease, as soon as there are some or patience ends."""
        answer: betimes.wire.parcels.LeasedParcels = self._caller.call(
            table.WORKERS_LEASE_PARCELS,
            path={"worker": worker},
            body={"max": max, "wait": wait, "queues": queues, "handlers": handlers},
            timeout=request_timeout,
        )
        return answer

    def lease(
        self,
        worker: str,
        *,
        max: int | Unset = UNSET,
        wait: float | Unset = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        handlers: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.LeasedRuns:
        """Runs one by one, as soon as there are some or patience ends."""
        answer: betimes.wire.workers.LeasedRuns = self._caller.call(
            table.WORKERS_LEASE,
            path={"worker": worker},
            body={"max": max, "wait": wait, "queues": queues, "handlers": handlers},
            timeout=request_timeout,
        )
        return answer


class Leases:
    """Operations of leases."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def report(
        self,
        *,
        parcels: collections.abc.Sequence[
            betimes.wire.parcels.ParcelReport | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.parcels.ParcelsReported:
        """What became of runs of parcels: successes as sets, everything else one by one."""
        answer: betimes.wire.parcels.ParcelsReported = self._caller.call(
            table.LEASES_REPORT,
            body={"parcels": parcels},
            timeout=request_timeout,
        )
        return answer

    def complete(
        self,
        lease: str,
        *,
        result: Any | Unset = UNSET,
        result_ref: str | Unset | None = UNSET,
        metrics: dict[str, float] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """The run ended well."""
        answer: betimes.wire.workers.Settled = self._caller.call(
            table.LEASES_COMPLETE,
            path={"lease": lease},
            body={"result": result, "result_ref": result_ref, "metrics": metrics},
            timeout=request_timeout,
        )
        return answer

    def fail(
        self,
        lease: str,
        *,
        error: betimes.wire.workers.ErrorTold | collections.abc.Mapping[str, Any] | Unset = UNSET,
        retry: Literal["auto", "never"]
        | betimes.wire.workers.RetryAfter
        | collections.abc.Mapping[str, Any]
        | Unset = UNSET,
        result: Any | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """The attempt failed."""
        answer: betimes.wire.workers.Settled = self._caller.call(
            table.LEASES_FAIL,
            path={"lease": lease},
            body={"error": error, "retry": retry, "result": result},
            timeout=request_timeout,
        )
        return answer

    def cancel(
        self,
        lease: str,
        *,
        reason: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """End the run as cancelled."""
        answer: betimes.wire.workers.Settled = self._caller.call(
            table.LEASES_CANCEL,
            path={"lease": lease},
            body={"reason": reason},
            timeout=request_timeout,
        )
        return answer

    def release(
        self,
        lease: str,
        *,
        reason: str | Unset = UNSET,
        after: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """Give a run back unfinished."""
        answer: betimes.wire.workers.Settled = self._caller.call(
            table.LEASES_RELEASE,
            path={"lease": lease},
            body={"reason": reason, "after": after},
            timeout=request_timeout,
        )
        return answer

    def snooze(
        self,
        lease: str,
        *,
        until: str | Unset | None = UNSET,
        for_: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """Be called again later."""
        answer: betimes.wire.workers.Settled = self._caller.call(
            table.LEASES_SNOOZE,
            path={"lease": lease},
            body={"until": until, "for": for_},
            timeout=request_timeout,
        )
        return answer

    def extend(
        self,
        lease: str,
        *,
        by: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.ExtendedTo:
        """Hold a run for longer."""
        answer: betimes.wire.workers.ExtendedTo = self._caller.call(
            table.LEASES_EXTEND,
            path={"lease": lease},
            body={"by": by},
            timeout=request_timeout,
        )
        return answer

    def progress(
        self,
        lease: str,
        *,
        percent: float | Unset | None = UNSET,
        message: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Say how far a run has come."""
        answer: betimes.wire.workers.Accepted = self._caller.call(
            table.LEASES_PROGRESS,
            path={"lease": lease},
            body={"percent": percent, "message": message},
            timeout=request_timeout,
        )
        return answer

    def checkpoint(
        self,
        lease: str,
        *,
        data: Any,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Keep something for the next attempt to begin from."""
        answer: betimes.wire.workers.Accepted = self._caller.call(
            table.LEASES_CHECKPOINT,
            path={"lease": lease},
            body={"data": data},
            timeout=request_timeout,
        )
        return answer

    def logs(
        self,
        lease: str,
        *,
        lines: collections.abc.Sequence[
            betimes.wire.workers.LogLine | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Add lines to the log of a run; the body may be packed with gzip."""
        answer: betimes.wire.workers.Accepted = self._caller.call(
            table.LEASES_LOGS,
            path={"lease": lease},
            body={"lines": lines},
            timeout=request_timeout,
        )
        return answer

    def batch(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.workers.ReportOne | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.ReportsDone:
        """Many reports in one transaction."""
        answer: betimes.wire.workers.ReportsDone = self._caller.call(
            table.LEASES_BATCH,
            body={"items": items},
            timeout=request_timeout,
        )
        return answer


class Explain:
    """Operations of explain."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def find(
        self,
        *,
        job: str | Unset | None = UNSET,
        run: str | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a job fires or does not, or why a run waits."""
        answer: betimes.wire.explain.Explanation = self._caller.call(
            table.EXPLAIN_FIND,
            query={"job": job, "run": run, "at": at},
            timeout=request_timeout,
        )
        return answer


class Forecast:
    """Operations of forecast."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def read(
        self,
        *,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        group_by: Literal["all", "queue", "handler", "tenant"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.forecast.Forecast:
        """The load ahead: fires per step, what they need, hot steps, advice."""
        answer: betimes.wire.forecast.Forecast = self._caller.call(
            table.FORECAST_READ,
            query={"from": from_, "to": to, "step": step, "group_by": group_by},
            timeout=request_timeout,
        )
        return answer

    def what_if(
        self,
        *,
        add: collections.abc.Sequence[
            betimes.wire.forecast.NewLoad | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        remove: builtins.list[str] | Unset = UNSET,
        change: collections.abc.Sequence[
            betimes.wire.forecast.ChangedLoad | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        slots: int | Unset | None = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        group_by: Literal["all", "queue", "handler"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.forecast.Compared:
        """The load as it would be with jobs added, taken away or changed; nothing is written."""
        answer: betimes.wire.forecast.Compared = self._caller.call(
            table.FORECAST_WHAT_IF,
            body={
                "add": add,
                "remove": remove,
                "change": change,
                "slots": slots,
                "from": from_,
                "to": to,
                "step": step,
                "group_by": group_by,
            },
            timeout=request_timeout,
        )
        return answer


class Events:
    """Operations of events."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        after: str | Unset | None = UNSET,
        types: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.EventPage:
        """Events after one, in order."""
        answer: betimes.wire.more.EventPage = self._caller.call(
            table.EVENTS_LIST,
            query={"limit": limit, "after": after, "types": types},
            timeout=request_timeout,
        )
        return answer

    def trigger(
        self,
        *,
        type: str,
        subject: str | Unset | None = UNSET,
        data: dict[str, Any] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.Event:
        """Make an event at will, to try who is told of it."""
        answer: betimes.wire.more.Event = self._caller.call(
            table.EVENTS_TRIGGER,
            body={"type": type, "subject": subject, "data": data},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class Endpoints:
    """Operations of endpoints."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        callbacks: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.endpoints.Endpoint]:
        """List who wants to be told, and how each fares."""
        answer: Pages[betimes.wire.endpoints.Endpoint] = self._caller.pages(
            table.ENDPOINTS_LIST,
            query={"limit": limit, "callbacks": callbacks},
            timeout=request_timeout,
        )
        return answer

    def create(
        self,
        *,
        type: Literal["webhook", "email", "chat"],
        event_types: builtins.list[str],
        url: str | Unset | None = UNSET,
        address: str | Unset | None = UNSET,
        style: Literal["slack", "teams", "discord"] | Unset = UNSET,
        name: str | Unset = UNSET,
        filter: betimes.wire.endpoints.EventFilter
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        concurrency: int | Unset = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        payload: Literal["thin", "full"] | Unset = UNSET,
        disabled: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Make an endpoint; the secret of a webhook is in the answer, this once."""
        answer: betimes.wire.endpoints.Endpoint = self._caller.call(
            table.ENDPOINTS_CREATE,
            body={
                "type": type,
                "event_types": event_types,
                "url": url,
                "address": address,
                "style": style,
                "name": name,
                "filter": filter,
                "concurrency": concurrency,
                "rate": rate,
                "payload": payload,
                "disabled": disabled,
            },
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        endpoint: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Read one endpoint."""
        answer: betimes.wire.endpoints.Endpoint = self._caller.call(
            table.ENDPOINTS_GET,
            path={"endpoint": endpoint},
            timeout=request_timeout,
        )
        return answer

    def update(
        self,
        endpoint: str,
        *,
        event_types: builtins.list[str] | Unset | None = UNSET,
        url: str | Unset | None = UNSET,
        address: str | Unset | None = UNSET,
        style: Literal["slack", "teams", "discord"] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        filter: betimes.wire.endpoints.EventFilter
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        concurrency: int | Unset | None = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        payload: Literal["thin", "full"] | Unset | None = UNSET,
        disabled: bool | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Change an endpoint, disable it, or send to it again."""
        answer: betimes.wire.endpoints.Endpoint = self._caller.call(
            table.ENDPOINTS_UPDATE,
            path={"endpoint": endpoint},
            body={
                "event_types": event_types,
                "url": url,
                "address": address,
                "style": style,
                "name": name,
                "filter": filter,
                "concurrency": concurrency,
                "rate": rate,
                "payload": payload,
                "disabled": disabled,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        endpoint: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget an endpoint; what waited for it is sent to nobody."""
        answer: None = self._caller.call(
            table.ENDPOINTS_DELETE,
            path={"endpoint": endpoint},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def rotate_secret(
        self,
        endpoint: str,
        *,
        overlap: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Sign with a new secret; the present one signs beside it for a while."""
        answer: betimes.wire.endpoints.Endpoint = self._caller.call(
            table.ENDPOINTS_ROTATE_SECRET,
            path={"endpoint": endpoint},
            body={"overlap": overlap},
            timeout=request_timeout,
        )
        return answer

    def enable(
        self,
        endpoint: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Send to an endpoint that was disabled; what waits goes out."""
        answer: betimes.wire.endpoints.Endpoint = self._caller.call(
            table.ENDPOINTS_ENABLE,
            path={"endpoint": endpoint},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def redeliver(
        self,
        endpoint: str,
        *,
        since: str,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Send an endpoint what failed or was never sent since an instant, as an operation."""
        answer: betimes.wire.operations.Operation = self._caller.call(
            table.ENDPOINTS_REDELIVER,
            path={"endpoint": endpoint},
            body={"since": since, "operation_id": operation_id},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def test(
        self,
        endpoint: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Send a test and answer what came of it."""
        answer: betimes.wire.endpoints.Delivery = self._caller.call(
            table.ENDPOINTS_TEST,
            path={"endpoint": endpoint},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def deliveries(
        self,
        endpoint: str,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["waiting", "delivered", "failed"]] | Unset = UNSET,
        types: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.endpoints.Delivery]:
        """List what was sent to an endpoint, newest first."""
        answer: Pages[betimes.wire.endpoints.Delivery] = self._caller.pages(
            table.ENDPOINTS_DELIVERIES,
            path={"endpoint": endpoint},
            query={"limit": limit, "state": state, "types": types},
            timeout=request_timeout,
        )
        return answer


class EventTypes:
    """Operations of event_types."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.EventTypes:
        """Every type of event, with the shape of its data."""
        answer: betimes.wire.endpoints.EventTypes = self._caller.call(
            table.EVENT_TYPES_LIST,
            timeout=request_timeout,
        )
        return answer


class Deliveries:
    """Operations of deliveries."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(
        self,
        delivery: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Read one delivery, and what its last attempt was answered."""
        answer: betimes.wire.endpoints.Delivery = self._caller.call(
            table.DELIVERIES_GET,
            path={"delivery": delivery},
            timeout=request_timeout,
        )
        return answer

    def redeliver(
        self,
        delivery: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Send a delivery that is over once more, under the same id."""
        answer: betimes.wire.endpoints.Delivery = self._caller.call(
            table.DELIVERIES_REDELIVER,
            path={"delivery": delivery},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AlertRules:
    """Operations of alert_rules."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.alerts.Rule]:
        """List alert rules by name."""
        answer: Pages[betimes.wire.alerts.Rule] = self._caller.pages(
            table.ALERT_RULES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        rule: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Rule:
        """Read one alert rule."""
        answer: betimes.wire.alerts.Rule = self._caller.call(
            table.ALERT_RULES_GET,
            path={"rule": rule},
            timeout=request_timeout,
        )
        return answer

    def put(
        self,
        rule: str,
        *,
        condition: Literal[
            "job_failed_n",
            "job_late",
            "job_missed",
            "job_slow",
            "no_success_since",
            "dead_letter_rate",
            "queue_lag",
            "queue_depth",
        ],
        threshold: str | float,
        window: str | float | Unset | None = UNSET,
        for_: str | float | Unset = UNSET,
        severity: Literal["info", "warning", "error", "critical"] | Unset = UNSET,
        jobs: builtins.list[str] | Unset = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        queues: builtins.list[str] | Unset = UNSET,
        targets: builtins.list[str] | Unset = UNSET,
        disabled: bool | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Rule:
        """Make or replace an alert rule."""
        answer: betimes.wire.alerts.Rule = self._caller.call(
            table.ALERT_RULES_PUT,
            path={"rule": rule},
            query={"force": force},
            body={
                "condition": condition,
                "threshold": threshold,
                "window": window,
                "for": for_,
                "severity": severity,
                "jobs": jobs,
                "tags": tags,
                "queues": queues,
                "targets": targets,
                "disabled": disabled,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        rule: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget an alert rule; what is open of it ends, untold."""
        answer: None = self._caller.call(
            table.ALERT_RULES_DELETE,
            path={"rule": rule},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Alerts:
    """Operations of alerts."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["pending", "firing", "resolved"]] | Unset = UNSET,
        rule: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.alerts.Alert]:
        """List what alert rules have found, newest first."""
        answer: Pages[betimes.wire.alerts.Alert] = self._caller.pages(
            table.ALERTS_LIST,
            query={"limit": limit, "state": state, "rule": rule},
            timeout=request_timeout,
        )
        return answer


class Silences:
    """Operations of silences."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.alerts.Silence]:
        """List silences that are not over."""
        answer: Pages[betimes.wire.alerts.Silence] = self._caller.pages(
            table.SILENCES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    def create(
        self,
        *,
        until: str,
        reason: str,
        rule: str | Unset | None = UNSET,
        subject: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Silence:
        """Tell nobody of a rule or a subject for a while."""
        answer: betimes.wire.alerts.Silence = self._caller.call(
            table.SILENCES_CREATE,
            body={"until": until, "reason": reason, "rule": rule, "subject": subject},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def delete(
        self,
        silence: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """End a silence before its time."""
        answer: None = self._caller.call(
            table.SILENCES_DELETE,
            path={"silence": silence},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class Operations:
    """Operations of operations."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["pending", "running", "succeeded", "failed", "cancelled"]]
        | Unset = UNSET,
        kind: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> Pages[betimes.wire.operations.Operation]:
        """List long work, newest first."""
        answer: Pages[betimes.wire.operations.Operation] = self._caller.pages(
            table.OPERATIONS_LIST,
            query={"limit": limit, "state": state, "kind": kind},
            timeout=request_timeout,
        )
        return answer

    def get(
        self,
        operation: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """How far an operation is, and what became of it."""
        answer: betimes.wire.operations.Operation = self._caller.call(
            table.OPERATIONS_GET,
            path={"operation": operation},
            timeout=request_timeout,
        )
        return answer

    def cancel(
        self,
        operation: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Stop an operation where it is; what was done stays done."""
        answer: betimes.wire.operations.Operation = self._caller.call(
            table.OPERATIONS_CANCEL,
            path={"operation": operation},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class Cluster:
    """Operations of cluster."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """The cell."""
        answer: betimes.wire.more.ClusterShown = self._caller.call(
            table.CLUSTER_GET,
            timeout=request_timeout,
        )
        return answer

    def shards(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ShardList:
        """Every shard and its owner."""
        answer: betimes.wire.more.ShardList = self._caller.call(
            table.CLUSTER_SHARDS,
            timeout=request_timeout,
        )
        return answer

    def nodes(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.NodeList:
        """Every process of the service."""
        answer: betimes.wire.more.NodeList = self._caller.call(
            table.CLUSTER_NODES,
            timeout=request_timeout,
        )
        return answer

    def pause(
        self,
        *,
        reason: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """Lease nothing in the whole cell until it is resumed."""
        answer: betimes.wire.more.ClusterShown = self._caller.call(
            table.CLUSTER_PAUSE,
            body={"reason": reason},
            timeout=request_timeout,
        )
        return answer

    def resume(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """Let the brake go."""
        answer: betimes.wire.more.ClusterShown = self._caller.call(
            table.CLUSTER_RESUME,
            timeout=request_timeout,
        )
        return answer

    def drain_node(
        self,
        node: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.NodeShown:
        """Ask a node to finish what it holds and to stop."""
        answer: betimes.wire.more.NodeShown = self._caller.call(
            table.CLUSTER_DRAIN_NODE,
            path={"node": node},
            timeout=request_timeout,
        )
        return answer


class Resources(Meta):
    """Every group of operations."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self.tenants = Tenants(caller)
        self.quotas = Quotas(caller)
        self.keys = Keys(caller)
        self.members = Members(caller)
        self.sessions = Sessions(caller)
        self.auth = Auth(caller)
        self.jobs = Jobs(caller)
        self.search = Search(caller)
        self.import_ = Import(caller)
        self.export = Export(caller)
        self.schedules = Schedules(caller)
        self.upcoming = Upcoming(caller)
        self.calendars = Calendars(caller)
        self.targets = Targets(caller)
        self.secrets = Secrets(caller)
        self.runs = Runs(caller)
        self.workflows = Workflows(caller)
        self.workflow_runs = WorkflowRuns(caller)
        self.audit = Audit(caller)
        self.catchups = Catchups(caller)
        self.dead_letters = DeadLetters(caller)
        self.queues = Queues(caller)
        self.rate_limits = RateLimits(caller)
        self.usage = Usage(caller)
        self.blobs = Blobs(caller)
        self.workers = Workers(caller)
        self.leases = Leases(caller)
        self.explain = Explain(caller)
        self.forecast = Forecast(caller)
        self.events = Events(caller)
        self.endpoints = Endpoints(caller)
        self.event_types = EventTypes(caller)
        self.deliveries = Deliveries(caller)
        self.alert_rules = AlertRules(caller)
        self.alerts = Alerts(caller)
        self.silences = Silences(caller)
        self.operations = Operations(caller)
        self.cluster = Cluster(caller)


class AsyncMeta:
    """Operations of meta."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def health(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Health:
        """Whether the process is alive."""
        answer: betimes.wire.meta.Health = await self._caller.call(
            table.META_HEALTH,
            timeout=request_timeout,
        )
        return answer

    async def ready(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Ready:
        """Whether requests are welcome."""
        answer: betimes.wire.meta.Ready = await self._caller.call(
            table.META_READY,
            timeout=request_timeout,
        )
        return answer

    async def version(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Version:
        """Which release this is."""
        answer: betimes.wire.meta.Version = await self._caller.call(
            table.META_VERSION,
            timeout=request_timeout,
        )
        return answer

    async def time(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.Time:
        """The time of the database, and how far nodes are from it."""
        answer: betimes.wire.meta.Time = await self._caller.call(
            table.META_TIME,
            timeout=request_timeout,
        )
        return answer

    async def whoami(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.meta.WhoAmI:
        """Who asks, for whom, and how much they may."""
        answer: betimes.wire.meta.WhoAmI = await self._caller.call(
            table.META_WHOAMI,
            timeout=request_timeout,
        )
        return answer

    async def openapi(
        self,
        *,
        request_timeout: float | None = None,
    ) -> dict[str, Any]:
        """This document."""
        answer: dict[str, Any] = await self._caller.call(
            table.META_OPENAPI,
            timeout=request_timeout,
        )
        return answer

    async def metrics(
        self,
        *,
        request_timeout: float | None = None,
    ) -> str:
        """The metrics of this node as Prometheus reads them."""
        answer: str = await self._caller.call(
            table.META_METRICS,
            timeout=request_timeout,
        )
        return answer


class AsyncTenants:
    """Operations of tenants."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.keys.Tenant]:
        """List tenants."""
        answer: AsyncPages[betimes.wire.keys.Tenant] = self._caller.pages(
            table.TENANTS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def create(
        self,
        *,
        slug: str,
        name: str,
        timezone: str | Unset = UNSET,
        plan: str | Unset = UNSET,
        weight: float | Unset = UNSET,
        quotas: dict[str, int] | Unset = UNSET,
        settings: dict[str, Any] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Make a tenant."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_CREATE,
            body={
                "slug": slug,
                "name": name,
                "timezone": timezone,
                "plan": plan,
                "weight": weight,
                "quotas": quotas,
                "settings": settings,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Read one tenant."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_GET,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        tenant: str,
        *,
        name: str | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
        plan: str | Unset | None = UNSET,
        weight: float | Unset | None = UNSET,
        quotas: dict[str, int | None] | Unset | None = UNSET,
        settings: dict[str, Any] | Unset | None = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Change a tenant."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_UPDATE,
            path={"tenant": tenant},
            body={
                "name": name,
                "timezone": timezone,
                "plan": plan,
                "weight": weight,
                "quotas": quotas,
                "settings": settings,
            },
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def suspend(
        self,
        tenant: str,
        *,
        reason: str | Unset = UNSET,
        mode: Literal["reject_new", "stop_all"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Close a tenant for new things, or for everything."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_SUSPEND,
            path={"tenant": tenant},
            body={"reason": reason, "mode": mode},
            timeout=request_timeout,
        )
        return answer

    async def resume(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Open a tenant again."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_RESUME,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        tenant: str,
        *,
        grace: str | float | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Delete a suspended tenant with all its data, as an operation that begins after a grace."""
        answer: betimes.wire.operations.Operation = await self._caller.call(
            table.TENANTS_DELETE,
            path={"tenant": tenant},
            query={"grace": grace},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def get_quotas(
        self,
        tenant: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.QuotaList:
        """Every limit of a tenant, and how much of it is used."""
        answer: betimes.wire.keys.QuotaList = await self._caller.call(
            table.TENANTS_GET_QUOTAS,
            path={"tenant": tenant},
            timeout=request_timeout,
        )
        return answer

    async def set_quotas(
        self,
        tenant: str,
        *,
        quotas: dict[str, int],
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Tenant:
        """Replace the quotas of a tenant."""
        answer: betimes.wire.keys.Tenant = await self._caller.call(
            table.TENANTS_SET_QUOTAS,
            path={"tenant": tenant},
            body={"quotas": quotas},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncQuotas:
    """Operations of quotas."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.QuotaList:
        """Every limit of the tenant, and how much of it is used."""
        answer: betimes.wire.keys.QuotaList = await self._caller.call(
            table.QUOTAS_LIST,
            timeout=request_timeout,
        )
        return answer


class AsyncKeys:
    """Operations of keys."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.keys.Key]:
        """List keys."""
        answer: AsyncPages[betimes.wire.keys.Key] = self._caller.pages(
            table.KEYS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def create(
        self,
        *,
        name: str,
        kind: Literal["sk", "wk", "rk", "ak"] | Unset = UNSET,
        scopes: builtins.list[str] | Unset = UNSET,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset | None = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        ip_allow: builtins.list[str] | Unset | None = UNSET,
        expires_at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.MadeKey:
        """Make a key; its secret is shown this once."""
        answer: betimes.wire.keys.MadeKey = await self._caller.call(
            table.KEYS_CREATE,
            body={
                "name": name,
                "kind": kind,
                "scopes": scopes,
                "role": role,
                "queues": queues,
                "ip_allow": ip_allow,
                "expires_at": expires_at,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        key: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Key:
        """Read one key."""
        answer: betimes.wire.keys.Key = await self._caller.call(
            table.KEYS_GET,
            path={"key": key},
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        key: str,
        *,
        name: str | Unset | None = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        ip_allow: builtins.list[str] | Unset | None = UNSET,
        expires_at: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.Key:
        """Rename a key, bind it otherwise, or let it expire."""
        answer: betimes.wire.keys.Key = await self._caller.call(
            table.KEYS_UPDATE,
            path={"key": key},
            body={"name": name, "queues": queues, "ip_allow": ip_allow, "expires_at": expires_at},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def revoke(
        self,
        key: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Revoke a key at once."""
        answer: None = await self._caller.call(
            table.KEYS_REVOKE,
            path={"key": key},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def rotate(
        self,
        key: str,
        *,
        overlap: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.keys.MadeKey:
        """Replace a key; the old one works until the overlap has passed."""
        answer: betimes.wire.keys.MadeKey = await self._caller.call(
            table.KEYS_ROTATE,
            path={"key": key},
            body={"overlap": overlap},
            timeout=request_timeout,
        )
        return answer


class AsyncMembers:
    """Operations of members."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.people.Member]:
        """List the people of the tenant."""
        answer: AsyncPages[betimes.wire.people.Member] = self._caller.pages(
            table.MEMBERS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def invite(
        self,
        *,
        email: str,
        name: str,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Invite somebody; the code in the answer lets them in once."""
        answer: betimes.wire.people.Member = await self._caller.call(
            table.MEMBERS_INVITE,
            body={"email": email, "name": name, "role": role},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        member: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Read one member."""
        answer: betimes.wire.people.Member = await self._caller.call(
            table.MEMBERS_GET,
            path={"member": member},
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        member: str,
        *,
        name: str | Unset | None = UNSET,
        role: Literal["viewer", "operator", "editor", "admin"] | Unset | None = UNSET,
        renew_code: bool | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Member:
        """Change the name or role of a member, or make a fresh code."""
        answer: betimes.wire.people.Member = await self._caller.call(
            table.MEMBERS_UPDATE,
            path={"member": member},
            body={"name": name, "role": role, "renew_code": renew_code},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def remove(
        self,
        member: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Let a member go; their sessions end."""
        answer: None = await self._caller.call(
            table.MEMBERS_REMOVE,
            path={"member": member},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncSessions:
    """Operations of sessions."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        key: str | Unset | None = UNSET,
        code: str | Unset | None = UNSET,
        tenant: str | Unset | None = UNSET,
        email: str | Unset | None = UNSET,
        password: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Session:
        """Sign in from a browser: with a key, a one-time code, or a password."""
        answer: betimes.wire.people.Session = await self._caller.call(
            table.SESSIONS_CREATE,
            body={"key": key, "code": code, "tenant": tenant, "email": email, "password": password},
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Sign out."""
        answer: None = await self._caller.call(
            table.SESSIONS_DELETE,
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncAuth:
    """Operations of auth."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def device(
        self,
        *,
        name: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.DeviceAsking:
        """Begin to sign in a device that has no browser."""
        answer: betimes.wire.people.DeviceAsking = await self._caller.call(
            table.AUTH_DEVICE,
            body={"name": name},
            timeout=request_timeout,
        )
        return answer

    async def device_token(
        self,
        *,
        device_code: str,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.Token:
        """The key of a device that was let in."""
        answer: betimes.wire.people.Token = await self._caller.call(
            table.AUTH_DEVICE_TOKEN,
            body={"device_code": device_code},
            timeout=request_timeout,
        )
        return answer

    async def answer_device(
        self,
        *,
        user_code: str,
        approve: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.people.DeviceAnswered:
        """Let a device act for the caller, or refuse it."""
        answer: betimes.wire.people.DeviceAnswered = await self._caller.call(
            table.AUTH_ANSWER_DEVICE,
            body={"user_code": user_code, "approve": approve},
            timeout=request_timeout,
        )
        return answer


class AsyncJobs:
    """Operations of jobs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        schedule: str | dict[str, Any] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        group: str | Unset = UNSET,
        description: str | Unset = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        handler: str | Unset | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        payload_schema: dict[str, Any] | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        action_after_completion: Literal["keep", "delete"] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        paused: bool | Unset = UNSET,
        pause_reason: str | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        run_at: str | Unset | None = UNSET,
        cron: str | Unset | None = UNSET,
        payload_reference: str | Unset | None = UNSET,
        validate_only: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Create a job."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_CREATE,
            query={"validate_only": validate_only},
            body={
                "schedule": schedule,
                "name": name,
                "group": group,
                "description": description,
                "target": target,
                "handler": handler,
                "payload": payload,
                "payload_ref": payload_ref,
                "payload_schema": payload_schema,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "retention": retention,
                "tags": tags,
                "metadata": metadata,
                "action_after_completion": action_after_completion,
                "notify": notify,
                "paused": paused,
                "pause_reason": pause_reason,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
                "runAt": run_at,
                "cron": cron,
                "payloadRef": payload_reference,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        view: Literal["definition", "basic", "full"] | Unset = UNSET,
        state: builtins.list[Literal["active", "paused", "auto_paused", "completed", "cancelled"]]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        group: str | Unset | None = UNSET,
        name_prefix: str | Unset | None = UNSET,
        schedule_type: builtins.list[str] | Unset = UNSET,
        target_type: builtins.list[Literal["task", "http"]] | Unset = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        next_fire_after: str | Unset | None = UNSET,
        next_fire_before: str | Unset | None = UNSET,
        include: builtins.list[Literal["last_run"]] | Unset = UNSET,
        sort: Literal["created_at", "-created_at", "name", "next_fire_at", "-updated_at"]
        | Unset = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.jobs.Job]:
        """List jobs."""
        answer: AsyncPages[betimes.wire.jobs.Job] = self._caller.pages(
            table.JOBS_LIST,
            query={
                "limit": limit,
                "fields": fields,
                "view": view,
                "state": state,
                "queue": queue,
                "handler": handler,
                "group": group,
                "name_prefix": name_prefix,
                "schedule_type": schedule_type,
                "target_type": target_type,
                "tag": tag,
                "next_fire_after": next_fire_after,
                "next_fire_before": next_fire_before,
                "include": include,
                "sort": sort,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        job: str,
        *,
        view: Literal["definition", "basic", "full"] | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        include: builtins.list[Literal["last_run", "stats_24h"]] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Read one job."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_GET,
            path={"job": job},
            query={"view": view, "fields": fields, "include": include},
            timeout=request_timeout,
        )
        return answer

    async def replace(
        self,
        job: str,
        *,
        schedule: str | dict[str, Any] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        group: str | Unset = UNSET,
        description: str | Unset = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        handler: str | Unset | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        payload_schema: dict[str, Any] | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        action_after_completion: Literal["keep", "delete"] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        paused: bool | Unset = UNSET,
        pause_reason: str | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        run_at: str | Unset | None = UNSET,
        cron: str | Unset | None = UNSET,
        payload_reference: str | Unset | None = UNSET,
        validate_only: bool | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Create a job under a name, or replace its whole definition."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_REPLACE,
            path={"job": job},
            query={"validate_only": validate_only, "force": force},
            body={
                "schedule": schedule,
                "name": name,
                "group": group,
                "description": description,
                "target": target,
                "handler": handler,
                "payload": payload,
                "payload_ref": payload_ref,
                "payload_schema": payload_schema,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "retention": retention,
                "tags": tags,
                "metadata": metadata,
                "action_after_completion": action_after_completion,
                "notify": notify,
                "paused": paused,
                "pause_reason": pause_reason,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
                "runAt": run_at,
                "cron": cron,
                "payloadRef": payload_reference,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        job: str,
        *,
        changes: dict[str, Any],
        validate_only: bool | Unset = UNSET,
        apply_to: Literal["future", "pending"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Edit a job by a merge patch (RFC 7396)."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_UPDATE,
            path={"job": job},
            query={"validate_only": validate_only, "apply_to": apply_to},
            body=changes,
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        job: str,
        *,
        runs: Literal["keep", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a job; its history stays readable until its retention ends."""
        answer: None = await self._caller.call(
            table.JOBS_DELETE,
            path={"job": job},
            query={"runs": runs},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def pause(
        self,
        job: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        running: Literal["leave", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Pause a job; pausing it again is fine."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_PAUSE,
            path={"job": job},
            body={"reason": reason, "until": until, "running": running},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def resume(
        self,
        job: str,
        *,
        missed: Literal["skip", "run_latest", "run_all"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Resume a paused job."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_RESUME,
            path={"job": job},
            body={"missed": missed},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def cancel(
        self,
        job: str,
        *,
        reason: str | Unset = UNSET,
        running: Literal["leave", "cancel"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """End a job for good."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_CANCEL,
            path={"job": job},
            body={"reason": reason, "running": running},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def run(
        self,
        job: str,
        *,
        payload_override: Any | Unset = UNSET,
        priority: int | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        scheduled_for: str | Unset | None = UNSET,
        overlap: Literal["inherit", "allow"] | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run | betimes.wire.runs.RunMade:
        """Run a job now, beside its schedule."""
        answer: betimes.wire.runs.Run | betimes.wire.runs.RunMade = await self._caller.call(
            table.JOBS_RUN,
            path={"job": job},
            body={
                "payload_override": payload_override,
                "priority": priority,
                "at": at,
                "scheduled_for": scheduled_for,
                "overlap": overlap,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def skip_next(
        self,
        job: str,
        *,
        count: int | Unset = UNSET,
        until: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Skipped:
        """Skip the next fires."""
        answer: betimes.wire.jobs.Skipped = await self._caller.call(
            table.JOBS_SKIP_NEXT,
            path={"job": job},
            body={"count": count, "until": until},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def create_many(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.jobs.NewJob | collections.abc.Mapping[str, Any]
        ],
        mode: Literal["atomic", "independent"] | Unset = UNSET,
        validate_only: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.MadeJobs:
        """Create up to 1000 jobs, all or none, or each for itself."""
        answer: betimes.wire.jobs.MadeJobs = await self._caller.call(
            table.JOBS_CREATE_MANY,
            query={"validate_only": validate_only},
            body={"items": items, "mode": mode},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def revisions(
        self,
        job: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.revisions.RevisionList:
        """What a job was and is, newest first."""
        answer: betimes.wire.revisions.RevisionList = await self._caller.call(
            table.JOBS_REVISIONS,
            path={"job": job},
            timeout=request_timeout,
        )
        return answer

    async def revision(
        self,
        job: str,
        revision: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.revisions.Revision:
        """Read one definition of a job, as it was or is."""
        answer: betimes.wire.revisions.Revision = await self._caller.call(
            table.JOBS_REVISION,
            path={"job": job, "revision": revision},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    async def rollback(
        self,
        job: str,
        *,
        revision: int,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.jobs.Job:
        """Bring an old definition back, as a new revision."""
        answer: betimes.wire.jobs.Job = await self._caller.call(
            table.JOBS_ROLLBACK,
            path={"job": job},
            body={"revision": revision},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def bulk(
        self,
        *,
        action: Literal["pause", "resume", "cancel", "delete", "set"],
        filter: betimes.wire.jobs_bulk.JobChoice | collections.abc.Mapping[str, Any],
        set_: betimes.wire.jobs_bulk.SetJob
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        reason: str | Unset = UNSET,
        rate_per_second: float | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Pause, resume, cancel, delete or change what a filter means, as an operation."""
        answer: (
            betimes.wire.operations.Matched | betimes.wire.operations.Operation
        ) = await self._caller.call(
            table.JOBS_BULK,
            body={
                "action": action,
                "filter": filter,
                "set": set_,
                "reason": reason,
                "rate_per_second": rate_per_second,
                "dry_run": dry_run,
                "confirm_count": confirm_count,
                "operation_id": operation_id,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def apply(
        self,
        *,
        jobs: collections.abc.Sequence[
            betimes.wire.jobs.NewJob | collections.abc.Mapping[str, Any]
        ],
        selector: betimes.wire.apply.Selector | collections.abc.Mapping[str, Any] | Unset = UNSET,
        prune: bool | Unset = UNSET,
        adopt: bool | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.apply.Applied:
        """Bring a declared set of jobs about: create, change, and with prune delete."""
        answer: betimes.wire.apply.Applied = await self._caller.call(
            table.JOBS_APPLY,
            body={
                "jobs": jobs,
                "selector": selector,
                "prune": prune,
                "adopt": adopt,
                "dry_run": dry_run,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def next(
        self,
        job: str,
        *,
        count: int | Unset = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        excluded: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Preview:
        """The next fires of a job."""
        answer: betimes.wire.schedules.Preview = await self._caller.call(
            table.JOBS_NEXT,
            path={"job": job},
            query={"count": count, "from": from_, "to": to, "excluded": excluded},
            timeout=request_timeout,
        )
        return answer

    async def backfill(
        self,
        job: str,
        *,
        from_: str,
        to: str,
        max_runs: int | Unset = UNSET,
        order: Literal["oldest", "newest"] | Unset = UNSET,
        only_missing: bool | Unset = UNSET,
        rate_per_second: float | Unset = UNSET,
        overlap: Literal["inherit", "allow"] | Unset = UNSET,
        max_concurrency: int | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Backfilled:
        """Run the fires of a span in the past after all, at a bounded pace."""
        answer: betimes.wire.schedules.Backfilled = await self._caller.call(
            table.JOBS_BACKFILL,
            path={"job": job},
            body={
                "from": from_,
                "to": to,
                "max_runs": max_runs,
                "order": order,
                "only_missing": only_missing,
                "rate_per_second": rate_per_second,
                "overlap": overlap,
                "max_concurrency": max_concurrency,
                "dry_run": dry_run,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def runs(
        self,
        job: str,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        state: builtins.list[
            Literal[
                "scheduled",
                "queued",
                "running",
                "retry_wait",
                "succeeded",
                "dead",
                "cancelled",
                "skipped",
                "expired",
                "missed",
                "failed",
            ]
        ]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        trigger: builtins.list[
            Literal[
                "schedule", "manual", "api", "backfill", "retry", "redrive", "workflow", "compat"
            ]
        ]
        | Unset = UNSET,
        worker: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        due_after: str | Unset | None = UNSET,
        due_before: str | Unset | None = UNSET,
        scheduled_after: str | Unset | None = UNSET,
        scheduled_before: str | Unset | None = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        min_lag: str | float | Unset | None = UNSET,
        error_fingerprint: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.runs.Run]:
        """List the runs of a job, latest due first."""
        answer: AsyncPages[betimes.wire.runs.Run] = self._caller.pages(
            table.JOBS_RUNS,
            path={"job": job},
            query={
                "limit": limit,
                "fields": fields,
                "state": state,
                "queue": queue,
                "handler": handler,
                "trigger": trigger,
                "worker": worker,
                "tag": tag,
                "due_after": due_after,
                "due_before": due_before,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "min_lag": min_lag,
                "error_fingerprint": error_fingerprint,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    async def stats(
        self,
        job: str,
        *,
        window: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.JobStats:
        """What became of the runs of a job, and how long they waited and took."""
        answer: betimes.wire.insights.JobStats = await self._caller.call(
            table.JOBS_STATS,
            path={"job": job},
            query={"window": window},
            timeout=request_timeout,
        )
        return answer

    async def explain(
        self,
        job: str,
        *,
        at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a job fires or does not."""
        answer: betimes.wire.explain.Explanation = await self._caller.call(
            table.JOBS_EXPLAIN,
            path={"job": job},
            query={"at": at},
            timeout=request_timeout,
        )
        return answer


class AsyncSearch:
    """Operations of search."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def find(
        self,
        *,
        q: str,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.FoundList:
        """A job or a run by its id, jobs by name or tag, dead runs by error or tag."""
        answer: betimes.wire.queues.FoundList = await self._caller.call(
            table.SEARCH_FIND,
            query={"q": q, "limit": limit},
            timeout=request_timeout,
        )
        return answer


class AsyncImport:
    """Operations of import."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def crontab(
        self,
        *,
        content: bytes,
        dry_run: bool | Unset = UNSET,
        timezone: str | Unset | None = UNSET,
        system: bool | Unset = UNSET,
        user: str | Unset | None = UNSET,
        flavour: Literal["debian", "cronie"] | Unset | None = UNSET,
        handler: str | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        prefix: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Make jobs of the lines of a crontab."""
        answer: betimes.wire.queues.Imported = await self._caller.call(
            table.IMPORT_CRONTAB,
            query={
                "dry_run": dry_run,
                "timezone": timezone,
                "system": system,
                "user": user,
                "flavour": flavour,
                "handler": handler,
                "queue": queue,
                "prefix": prefix,
            },
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def kubernetes(
        self,
        *,
        items: builtins.list[dict[str, Any]],
        kind: str | Unset = UNSET,
        api_version: str | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        dry_run: bool | Unset = UNSET,
        timezone: str | Unset | None = UNSET,
        handler: str | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Make jobs of the CronJobs of a Kubernetes cluster."""
        answer: betimes.wire.queues.Imported = await self._caller.call(
            table.IMPORT_KUBERNETES,
            query={"dry_run": dry_run, "timezone": timezone, "handler": handler, "queue": queue},
            body={"items": items, "kind": kind, "apiVersion": api_version, "metadata": metadata},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def betimes(
        self,
        *,
        format: str,
        jobs: builtins.list[dict[str, Any]],
        calendars: collections.abc.Sequence[
            betimes.wire.queues.CalendarText | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        exported_at: str | Unset | None = UNSET,
        next_cursor: str | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Imported:
        """Create the calendars and jobs of an export."""
        answer: betimes.wire.queues.Imported = await self._caller.call(
            table.IMPORT_BETIMES,
            query={"dry_run": dry_run},
            body={
                "format": format,
                "jobs": jobs,
                "calendars": calendars,
                "exported_at": exported_at,
                "next_cursor": next_cursor,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncExport:
    """Operations of export."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def read(
        self,
        *,
        format: Literal["betimes", "crontab", "kubernetes"] | Unset = UNSET,
        group: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        cursor: str | Unset | None = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Exported:
        """Definitions of jobs, and the calendars they name, in our own format."""
        answer: betimes.wire.queues.Exported = await self._caller.call(
            table.EXPORT_READ,
            query={"format": format, "group": group, "tag": tag, "cursor": cursor, "limit": limit},
            timeout=request_timeout,
        )
        return answer


class AsyncSchedules:
    """Operations of schedules."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def preview(
        self,
        *,
        schedule: str | dict[str, Any],
        timezone: str | Unset | None = UNSET,
        from_: str | Unset | None = UNSET,
        count: int | Unset = UNSET,
        until: str | Unset | None = UNSET,
        horizon: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Preview:
        """The next fires of a schedule, and what may surprise about it."""
        answer: betimes.wire.schedules.Preview = await self._caller.call(
            table.SCHEDULES_PREVIEW,
            body={
                "schedule": schedule,
                "timezone": timezone,
                "from": from_,
                "count": count,
                "until": until,
                "horizon": horizon,
            },
            timeout=request_timeout,
        )
        return answer

    async def parse(
        self,
        *,
        text: str,
        timezone: str | Unset | None = UNSET,
        locale: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.schedules.Parsed:
        """What a line of words means as a schedule."""
        answer: betimes.wire.schedules.Parsed = await self._caller.call(
            table.SCHEDULES_PARSE,
            body={"text": text, "timezone": timezone, "locale": locale},
            timeout=request_timeout,
        )
        return answer


class AsyncUpcoming:
    """Operations of upcoming."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        within: str | float | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        include: builtins.list[Literal["fires", "runs", "retries"]] | Unset = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.schedules.Soon]:
        """What is due soon: runs, those that are tried again, and fires that become some."""
        answer: AsyncPages[betimes.wire.schedules.Soon] = self._caller.pages(
            table.UPCOMING_LIST,
            query={
                "within": within,
                "queue": queue,
                "job": job,
                "include": include,
                "limit": limit,
            },
            timeout=request_timeout,
        )
        return answer


class AsyncCalendars:
    """Operations of calendars."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.calendars.Calendar]:
        """List calendars by name."""
        answer: AsyncPages[betimes.wire.calendars.Calendar] = self._caller.pages(
            table.CALENDARS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        calendar: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.calendars.Calendar:
        """Read one calendar."""
        answer: betimes.wire.calendars.Calendar = await self._caller.call(
            table.CALENDARS_GET,
            path={"calendar": calendar},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        calendar: str,
        *,
        dates: builtins.list[str] | Unset = UNSET,
        ranges: builtins.list[str] | Unset = UNSET,
        weekdays: builtins.list[Literal["sun", "mon", "tue", "wed", "thu", "fri", "sat"]]
        | Unset = UNSET,
        ics: str | Unset | None = UNSET,
        description: str | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.calendars.Calendar:
        """Make or replace a calendar; jobs that use it are planned anew, as an operation."""
        answer: betimes.wire.calendars.Calendar = await self._caller.call(
            table.CALENDARS_PUT,
            path={"calendar": calendar},
            query={"force": force},
            body={
                "dates": dates,
                "ranges": ranges,
                "weekdays": weekdays,
                "ics": ics,
                "description": description,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        calendar: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a calendar that no job uses."""
        answer: None = await self._caller.call(
            table.CALENDARS_DELETE,
            path={"calendar": calendar},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncTargets:
    """Operations of targets."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def reset(
        self,
        *,
        origin: str,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.targets.Origin:
        """Close the breaker of an origin by hand; it is asked for little at first."""
        answer: betimes.wire.targets.Origin = await self._caller.call(
            table.TARGETS_RESET,
            body={"origin": origin},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.targets.Origin]:
        """List the origins that jobs call, with their breakers and limits."""
        answer: AsyncPages[betimes.wire.targets.Origin] = self._caller.pages(
            table.TARGETS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def signing_secret(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.targets.SigningSecret:
        """Read what requests to targets are signed with."""
        answer: betimes.wire.targets.SigningSecret = await self._caller.call(
            table.TARGETS_SIGNING_SECRET,
            timeout=request_timeout,
        )
        return answer


class AsyncSecrets:
    """Operations of secrets."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.secrets.Secret]:
        """List the names of secrets."""
        answer: AsyncPages[betimes.wire.secrets.Secret] = self._caller.pages(
            table.SECRETS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        secret: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.SecretShown:
        """When and by whom a secret was written; never what it is."""
        answer: betimes.wire.secrets.SecretShown = await self._caller.call(
            table.SECRETS_GET,
            path={"secret": secret},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        secret: str,
        *,
        value: str | Unset | None = UNSET,
        value_base64: str | Unset | None = UNSET,
        keep: int | Unset = UNSET,
        origins: builtins.list[str] | Unset | None = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.Secret:
        """Write a secret, as a new version if there is one."""
        answer: betimes.wire.secrets.Secret = await self._caller.call(
            table.SECRETS_PUT,
            path={"secret": secret},
            body={"value": value, "value_base64": value_base64, "keep": keep, "origins": origins},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def bind(
        self,
        secret: str,
        *,
        origins: builtins.list[str],
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.secrets.Secret:
        """Say where a secret may be sent."""
        answer: betimes.wire.secrets.Secret = await self._caller.call(
            table.SECRETS_BIND,
            path={"secret": secret},
            body={"origins": origins},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        secret: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a secret with all its versions."""
        answer: None = await self._caller.call(
            table.SECRETS_DELETE,
            path={"secret": secret},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def delete_version(
        self,
        secret: str,
        version: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget one version of a secret."""
        answer: None = await self._caller.call(
            table.SECRETS_DELETE_VERSION,
            path={"secret": secret, "version": version},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncRuns:
    """Operations of runs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        handler: str | Unset | None = UNSET,
        target: betimes.wire.jobs.TaskTarget
        | collections.abc.Mapping[str, Any]
        | betimes.wire.jobs.HttpTarget
        | betimes.wire.workflow_target.WorkflowTarget
        | Unset
        | None = UNSET,
        payload: Any | Unset = UNSET,
        payload_ref: str | Unset | None = UNSET,
        queue: str | Unset = UNSET,
        priority: int | Unset = UNSET,
        concurrency: betimes.wire.jobs.Concurrency
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        fairness_key: str | Unset | None = UNSET,
        rate_limit_key: str | Unset | None = UNSET,
        delay: str | float | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        retry: betimes.wire.jobs.Retry | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        timeout: str | float | Unset | None = UNSET,
        start_deadline: str | float | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        notify: collections.abc.Sequence[
            betimes.wire.callbacks.Callback | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        dedupe: betimes.wire.jobs.Dedupe | collections.abc.Mapping[str, Any] | Unset | None = UNSET,
        dedupe_key: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade | betimes.wire.runs.Run:
        """Enqueue a run without a job."""
        answer: betimes.wire.runs.RunMade | betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_CREATE,
            body={
                "handler": handler,
                "target": target,
                "payload": payload,
                "payload_ref": payload_ref,
                "queue": queue,
                "priority": priority,
                "concurrency": concurrency,
                "fairness_key": fairness_key,
                "rate_limit_key": rate_limit_key,
                "delay": delay,
                "at": at,
                "retry": retry,
                "timeout": timeout,
                "start_deadline": start_deadline,
                "tags": tags,
                "notify": notify,
                "dedupe": dedupe,
                "dedupe_key": dedupe_key,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def create_many(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.runs.NewRun | collections.abc.Mapping[str, Any]
        ],
        mode: Literal["atomic", "independent"] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunsMade | betimes.wire.runs.RunsTold:
        """Enqueue up to 1000 runs, all or none, or each for itself."""
        answer: betimes.wire.runs.RunsMade | betimes.wire.runs.RunsTold = await self._caller.call(
            table.RUNS_CREATE_MANY,
            body={"items": items, "mode": mode},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        state: builtins.list[
            Literal[
                "scheduled",
                "queued",
                "running",
                "retry_wait",
                "succeeded",
                "dead",
                "cancelled",
                "skipped",
                "expired",
                "missed",
                "failed",
            ]
        ]
        | Unset = UNSET,
        queue: builtins.list[str] | Unset = UNSET,
        handler: builtins.list[str] | Unset = UNSET,
        trigger: builtins.list[
            Literal[
                "schedule", "manual", "api", "backfill", "retry", "redrive", "workflow", "compat"
            ]
        ]
        | Unset = UNSET,
        worker: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        due_after: str | Unset | None = UNSET,
        due_before: str | Unset | None = UNSET,
        scheduled_after: str | Unset | None = UNSET,
        scheduled_before: str | Unset | None = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        min_lag: str | float | Unset | None = UNSET,
        error_fingerprint: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        workflow_run: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.runs.Run]:
        """List runs, latest due first."""
        answer: AsyncPages[betimes.wire.runs.Run] = self._caller.pages(
            table.RUNS_LIST,
            query={
                "limit": limit,
                "fields": fields,
                "state": state,
                "queue": queue,
                "handler": handler,
                "trigger": trigger,
                "worker": worker,
                "tag": tag,
                "due_after": due_after,
                "due_before": due_before,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "min_lag": min_lag,
                "error_fingerprint": error_fingerprint,
                "q": q,
                "count": count,
                "job": job,
                "workflow_run": workflow_run,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        run: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        fields: builtins.list[str] | Unset = UNSET,
        include: builtins.list[Literal["attempts"]] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Read one run."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_GET,
            path={"run": run},
            query={"view": view, "fields": fields, "include": include},
            timeout=request_timeout,
        )
        return answer

    async def wait(
        self,
        run: str,
        *,
        timeout: float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Read one run when it has ended, or when patience has."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_WAIT,
            path={"run": run},
            query={"timeout": timeout},
            timeout=request_timeout,
        )
        return answer

    def attempts(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.runs.Attempt]:
        """List the attempts of a run."""
        answer: AsyncPages[betimes.wire.runs.Attempt] = self._caller.pages(
            table.RUNS_ATTEMPTS,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    async def attempt(
        self,
        run: str,
        number: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Attempt:
        """Read one attempt of a run."""
        answer: betimes.wire.runs.Attempt = await self._caller.call(
            table.RUNS_ATTEMPT,
            path={"run": run, "number": number},
            timeout=request_timeout,
        )
        return answer

    async def timeline(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Timeline:
        """What happened to a run, in order."""
        answer: betimes.wire.runs.Timeline = await self._caller.call(
            table.RUNS_TIMELINE,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    async def payload(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """What a run was given, as it is."""
        answer: bytes = await self._caller.call(
            table.RUNS_PAYLOAD,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    async def result(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """What a run has returned, as it is."""
        answer: bytes = await self._caller.call(
            table.RUNS_RESULT,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer

    async def cancel(
        self,
        run: str,
        *,
        reason: str | Unset = UNSET,
        grace: str | float | Unset | None = UNSET,
        force: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """End a run; one under way is told with its worker's next heartbeat."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_CANCEL,
            path={"run": run},
            body={"reason": reason, "grace": grace, "force": force},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def cancel_by_key(
        self,
        *,
        dedupe_key: str,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """End the run that holds a dedupe key."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_CANCEL_BY_KEY,
            body={"dedupe_key": dedupe_key, "reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def retry(
        self,
        run: str,
        *,
        reset_attempts: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """One more try now, in the same run."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_RETRY,
            path={"run": run},
            body={"reset_attempts": reset_attempts},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def replay(
        self,
        run: str,
        *,
        payload_override: Any | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade:
        """Do it over, as a new run."""
        answer: betimes.wire.runs.RunMade = await self._caller.call(
            table.RUNS_REPLAY,
            path={"run": run},
            body={"payload_override": payload_override},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        run: str,
        *,
        due_at: str | Unset | None = UNSET,
        queue: str | Unset | None = UNSET,
        priority: int | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.Run:
        """Give a run that waits another time, queue or priority."""
        answer: betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_UPDATE,
            path={"run": run},
            body={"due_at": due_at, "queue": queue, "priority": priority},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def bulk(
        self,
        *,
        action: Literal["cancel", "retry", "replay", "set_priority"],
        filter: betimes.wire.operations.RunChoice
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        ids: builtins.list[str] | Unset | None = UNSET,
        reason: str | Unset = UNSET,
        priority: int | Unset | None = UNSET,
        rate_per_second: float | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Cancel, retry, replay or reprioritise many runs, as an operation."""
        answer: (
            betimes.wire.operations.Matched | betimes.wire.operations.Operation
        ) = await self._caller.call(
            table.RUNS_BULK,
            body={
                "action": action,
                "filter": filter,
                "ids": ids,
                "reason": reason,
                "priority": priority,
                "rate_per_second": rate_per_second,
                "dry_run": dry_run,
                "confirm_count": confirm_count,
                "operation_id": operation_id,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def enqueue_body(
        self,
        handler: str,
        *,
        content: bytes,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade | betimes.wire.runs.Run:
        """Enqueue a run whose payload is the body; delay, queue and priority are headers."""
        answer: betimes.wire.runs.RunMade | betimes.wire.runs.Run = await self._caller.call(
            table.RUNS_ENQUEUE_BODY,
            path={"handler": handler},
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def logs(
        self,
        run: str,
        *,
        after: int | Unset = UNSET,
        attempt: int | Unset | None = UNSET,
        level: builtins.list[Literal["debug", "info", "warning", "error"]] | Unset = UNSET,
        tail: int | Unset | None = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Log:
        """Lines of the log of a run, in order."""
        answer: betimes.wire.workers.Log = await self._caller.call(
            table.RUNS_LOGS,
            path={"run": run},
            query={
                "after": after,
                "attempt": attempt,
                "level": level,
                "tail": tail,
                "limit": limit,
            },
            timeout=request_timeout,
        )
        return answer

    async def explain(
        self,
        run: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a run waits, or what ended it."""
        answer: betimes.wire.explain.Explanation = await self._caller.call(
            table.RUNS_EXPLAIN,
            path={"run": run},
            timeout=request_timeout,
        )
        return answer


class AsyncWorkflows:
    """Operations of workflows."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.workflows.Workflow]:
        """List workflows by name, each in its newest version."""
        answer: AsyncPages[betimes.wire.workflows.Workflow] = self._caller.pages(
            table.WORKFLOWS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        workflow: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Read the newest version of a workflow."""
        answer: betimes.wire.workflows.Workflow = await self._caller.call(
            table.WORKFLOWS_GET,
            path={"workflow": workflow},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        workflow: str,
        *,
        nodes: dict[str, betimes.wire.workflows.NewNode],
        failure_policy: Literal["fail_fast", "continue"] | Unset = UNSET,
        timeout: str | float | Unset | None = UNSET,
        input_schema: dict[str, Any] | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Keep a workflow; what differs from its newest version is the next one."""
        answer: betimes.wire.workflows.Workflow = await self._caller.call(
            table.WORKFLOWS_PUT,
            path={"workflow": workflow},
            body={
                "nodes": nodes,
                "failure_policy": failure_policy,
                "timeout": timeout,
                "input_schema": input_schema,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        workflow: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a workflow that no job starts; what runs of it goes on."""
        answer: None = await self._caller.call(
            table.WORKFLOWS_DELETE,
            path={"workflow": workflow},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    def versions(
        self,
        workflow: str,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.workflows.Workflow]:
        """List the versions of a workflow, newest first."""
        answer: AsyncPages[betimes.wire.workflows.Workflow] = self._caller.pages(
            table.WORKFLOWS_VERSIONS,
            path={"workflow": workflow},
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def version(
        self,
        workflow: str,
        version: str,
        *,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.Workflow:
        """Read one version of a workflow."""
        answer: betimes.wire.workflows.Workflow = await self._caller.call(
            table.WORKFLOWS_VERSION,
            path={"workflow": workflow, "version": version},
            query={"view": view},
            timeout=request_timeout,
        )
        return answer

    async def start(
        self,
        workflow: str,
        *,
        input: Any | Unset = UNSET,
        version: int | Unset | None = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Start a workflow."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOWS_START,
            path={"workflow": workflow},
            body={"input": input, "version": version, "tags": tags},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncWorkflowRuns:
    """Operations of workflow_runs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        workflow: str | Unset | None = UNSET,
        state: builtins.list[Literal["running", "succeeded", "failed", "cancelled"]]
        | Unset = UNSET,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.workflows.WorkflowRun]:
        """List workflow runs, newest first."""
        answer: AsyncPages[betimes.wire.workflows.WorkflowRun] = self._caller.pages(
            table.WORKFLOW_RUNS_LIST,
            query={"workflow": workflow, "state": state, "limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        workflow_run: str,
        *,
        include: builtins.list[Literal["graph"]] | Unset = UNSET,
        view: Literal["basic", "full"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Read one workflow run; with `include=graph` its nodes, their times and the critical path."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_GET,
            path={"workflow_run": workflow_run},
            query={"include": include, "view": view},
            timeout=request_timeout,
        )
        return answer

    async def cancel(
        self,
        workflow_run: str,
        *,
        reason: str | Unset = UNSET,
        cleanup: bool | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Stop a workflow run; what cleans up still runs unless that is not wanted."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_CANCEL,
            path={"workflow_run": workflow_run},
            body={"reason": reason, "cleanup": cleanup},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def retry(
        self,
        workflow_run: str,
        *,
        origin: Literal["failed", "node", "start"] | Unset = UNSET,
        node: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Do a workflow run again from where it failed, from a node, or from its start."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_RETRY,
            path={"workflow_run": workflow_run},
            body={"from": origin, "node": node},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def skip(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Skip a node that has not started."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_SKIP,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def approve(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Open the gate of a node that waits for an approval."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_APPROVE,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def signal(
        self,
        workflow_run: str,
        workflow_node: str,
        *,
        data: Any | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workflows.WorkflowRun:
        """Open the gate of a node that waits for a signal, with what it is told."""
        answer: betimes.wire.workflows.WorkflowRun = await self._caller.call(
            table.WORKFLOW_RUNS_SIGNAL,
            path={"workflow_run": workflow_run, "workflow_node": workflow_node},
            body={"data": data},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncAudit:
    """Operations of audit."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def export(
        self,
        *,
        since: str | Unset | None = UNSET,
        until: str | Unset | None = UNSET,
        action: str | Unset | None = UNSET,
        resource: str | Unset | None = UNSET,
        actor: str | Unset | None = UNSET,
        format: Literal["jsonl", "csv"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> bytes:
        """Every act of a span, as lines of JSON or as a table."""
        answer: bytes = await self._caller.call(
            table.AUDIT_EXPORT,
            body={
                "since": since,
                "until": until,
                "action": action,
                "resource": resource,
                "actor": actor,
                "format": format,
            },
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        action: str | Unset | None = UNSET,
        resource: str | Unset | None = UNSET,
        actor: str | Unset | None = UNSET,
        since: str | Unset | None = UNSET,
        until: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.more.AuditEntry]:
        """List what was done, newest first."""
        answer: AsyncPages[betimes.wire.more.AuditEntry] = self._caller.pages(
            table.AUDIT_LIST,
            query={
                "limit": limit,
                "action": action,
                "resource": resource,
                "actor": actor,
                "since": since,
                "until": until,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        act: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.AuditEntry:
        """Read one act."""
        answer: betimes.wire.more.AuditEntry = await self._caller.call(
            table.AUDIT_GET,
            path={"act": act},
            timeout=request_timeout,
        )
        return answer

    async def verify(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.Verified:
        """Recompute the chains of the audit and tell whether they hold."""
        answer: betimes.wire.more.Verified = await self._caller.call(
            table.AUDIT_VERIFY,
            timeout=request_timeout,
        )
        return answer


class AsyncCatchups:
    """Operations of catchups."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.catchups.Catchup]:
        """List the times the tenant had to catch up, newest first."""
        answer: AsyncPages[betimes.wire.catchups.Catchup] = self._caller.pages(
            table.CATCHUPS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        catchup: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Read one catch-up: how much was missed, and what of it waits for approval."""
        answer: betimes.wire.catchups.Catchup = await self._caller.call(
            table.CATCHUPS_GET,
            path={"catchup": catchup},
            timeout=request_timeout,
        )
        return answer

    async def approve(
        self,
        catchup: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Let what waits run, at the pace of the tenant."""
        answer: betimes.wire.catchups.Catchup = await self._caller.call(
            table.CATCHUPS_APPROVE,
            path={"catchup": catchup},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def drop(
        self,
        catchup: str,
        *,
        reason: str | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.catchups.Catchup:
        """Drop what waits: none of it runs, every fire of it is recorded."""
        answer: betimes.wire.catchups.Catchup = await self._caller.call(
            table.CATCHUPS_DROP,
            path={"catchup": catchup},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncDeadLetters:
    """Operations of dead_letters."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: Literal["open", "redriven", "discarded"] | Unset = UNSET,
        fingerprint: str | Unset | None = UNSET,
        group: str | Unset | None = UNSET,
        queue: str | Unset | None = UNSET,
        handler: str | Unset | None = UNSET,
        job: str | Unset | None = UNSET,
        tag: builtins.list[str] | Unset = UNSET,
        finished_after: str | Unset | None = UNSET,
        finished_before: str | Unset | None = UNSET,
        error: str | Unset | None = UNSET,
        q: str | Unset | None = UNSET,
        count: Literal["estimate"] | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.more.DeadLetter]:
        """List dead letters, oldest death first."""
        answer: AsyncPages[betimes.wire.more.DeadLetter] = self._caller.pages(
            table.DEAD_LETTERS_LIST,
            query={
                "limit": limit,
                "state": state,
                "fingerprint": fingerprint,
                "group": group,
                "queue": queue,
                "handler": handler,
                "job": job,
                "tag": tag,
                "finished_after": finished_after,
                "finished_before": finished_before,
                "error": error,
                "q": q,
                "count": count,
            },
            timeout=request_timeout,
        )
        return answer

    async def groups(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.LetterGroups:
        """Open dead letters by what they died of."""
        answer: betimes.wire.more.LetterGroups = await self._caller.call(
            table.DEAD_LETTERS_GROUPS,
            timeout=request_timeout,
        )
        return answer

    async def bulk(
        self,
        *,
        action: Literal["redrive", "discard"],
        filter: betimes.wire.more.LetterChoice | collections.abc.Mapping[str, Any],
        rate_per_second: float | Unset | None = UNSET,
        reset_attempts: bool | Unset = UNSET,
        reason: str | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Redrive or discard what a filter means, as an operation."""
        answer: (
            betimes.wire.operations.Matched | betimes.wire.operations.Operation
        ) = await self._caller.call(
            table.DEAD_LETTERS_BULK,
            body={
                "action": action,
                "filter": filter,
                "rate_per_second": rate_per_second,
                "reset_attempts": reset_attempts,
                "reason": reason,
                "dry_run": dry_run,
                "confirm_count": confirm_count,
                "operation_id": operation_id,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        letter: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Read one dead letter with its attempts."""
        answer: betimes.wire.more.DeadLetter = await self._caller.call(
            table.DEAD_LETTERS_GET,
            path={"letter": letter},
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        letter: str,
        *,
        note: str | Unset | None = UNSET,
        assignee: str | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Write a note, or give the letter to somebody."""
        answer: betimes.wire.more.DeadLetter = await self._caller.call(
            table.DEAD_LETTERS_UPDATE,
            path={"letter": letter},
            body={"note": note, "assignee": assignee},
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def redrive(
        self,
        letter: str,
        *,
        payload_override: Any | Unset = UNSET,
        queue: str | Unset | None = UNSET,
        reset_attempts: bool | Unset = UNSET,
        delay: str | float | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.runs.RunMade:
        """Give a dead run another life."""
        answer: betimes.wire.runs.RunMade = await self._caller.call(
            table.DEAD_LETTERS_REDRIVE,
            path={"letter": letter},
            body={
                "payload_override": payload_override,
                "queue": queue,
                "reset_attempts": reset_attempts,
                "delay": delay,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def discard(
        self,
        letter: str,
        *,
        reason: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.DeadLetter:
        """Close a letter for good."""
        answer: betimes.wire.more.DeadLetter = await self._caller.call(
            table.DEAD_LETTERS_DISCARD,
            path={"letter": letter},
            body={"reason": reason},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncQueues:
    """Operations of queues."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.queues.Queue]:
        """List queues that have settings or work."""
        answer: AsyncPages[betimes.wire.queues.Queue] = self._caller.pages(
            table.QUEUES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        queue: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Read one queue."""
        answer: betimes.wire.queues.Queue = await self._caller.call(
            table.QUEUES_GET,
            path={"queue": queue},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        queue: str,
        *,
        max_concurrency: int | Unset | None = UNSET,
        per_key_concurrency: int | Unset | None = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        per_key_rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        weight: float | Unset = UNSET,
        fairness: Literal["tenant", "key", "none"] | Unset = UNSET,
        default_retry: betimes.wire.jobs.Retry
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        retention: str | float | Unset | None = UNSET,
        dead_letter: bool | Unset = UNSET,
        paused: bool | Unset | None = UNSET,
        description: str | Unset = UNSET,
        labels: dict[str, str] | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Store the settings of a queue."""
        answer: betimes.wire.queues.Queue = await self._caller.call(
            table.QUEUES_PUT,
            path={"queue": queue},
            body={
                "max_concurrency": max_concurrency,
                "per_key_concurrency": per_key_concurrency,
                "rate": rate,
                "per_key_rate": per_key_rate,
                "weight": weight,
                "fairness": fairness,
                "default_retry": default_retry,
                "retention": retention,
                "dead_letter": dead_letter,
                "paused": paused,
                "description": description,
                "labels": labels,
            },
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        queue: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget the settings of an empty queue."""
        answer: None = await self._caller.call(
            table.QUEUES_DELETE,
            path={"queue": queue},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def pause(
        self,
        queue: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Lease nothing of a queue until it is resumed."""
        answer: betimes.wire.queues.Queue = await self._caller.call(
            table.QUEUES_PAUSE,
            path={"queue": queue},
            body={"reason": reason, "until": until},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def resume(
        self,
        queue: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Go on with a paused queue."""
        answer: betimes.wire.queues.Queue = await self._caller.call(
            table.QUEUES_RESUME,
            path={"queue": queue},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def drain(
        self,
        queue: str,
        *,
        reason: str | Unset = UNSET,
        until: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Queue:
        """Accept nothing new for a queue, and finish what is there."""
        answer: betimes.wire.queues.Queue = await self._caller.call(
            table.QUEUES_DRAIN,
            path={"queue": queue},
            body={"reason": reason, "until": until},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def purge(
        self,
        queue: str,
        *,
        states: builtins.list[Literal["scheduled", "queued", "retry_wait"]] | Unset = UNSET,
        confirm_count: int | Unset | None = UNSET,
        dry_run: bool | Unset = UNSET,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Matched | betimes.wire.operations.Operation:
        """Cancel what waits in a queue, as an operation."""
        answer: (
            betimes.wire.operations.Matched | betimes.wire.operations.Operation
        ) = await self._caller.call(
            table.QUEUES_PURGE,
            path={"queue": queue},
            body={
                "states": states,
                "confirm_count": confirm_count,
                "dry_run": dry_run,
                "operation_id": operation_id,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def stats(
        self,
        queue: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.QueueStats:
        """What waits in a queue and is under way."""
        answer: betimes.wire.queues.QueueStats = await self._caller.call(
            table.QUEUES_STATS,
            path={"queue": queue},
            timeout=request_timeout,
        )
        return answer

    async def series(
        self,
        queue: str,
        *,
        metric: Literal["due", "succeeded", "dead", "run_seconds", "lag_p95_ms"] | Unset = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.Series:
        """Numbers of a queue over time."""
        answer: betimes.wire.insights.Series = await self._caller.call(
            table.QUEUES_SERIES,
            path={"queue": queue},
            query={"metric": metric, "from": from_, "to": to, "step": step},
            timeout=request_timeout,
        )
        return answer

    async def keys(
        self,
        queue: str,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.QueueKeys:
        """The busiest concurrency keys of a queue."""
        answer: betimes.wire.insights.QueueKeys = await self._caller.call(
            table.QUEUES_KEYS,
            path={"queue": queue},
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer


class AsyncRateLimits:
    """Operations of rate_limits."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.queues.KeyRate]:
        """List the rate limit keys about which something was said."""
        answer: AsyncPages[betimes.wire.queues.KeyRate] = self._caller.pages(
            table.RATE_LIMITS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        key: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.KeyRate:
        """Read the rate of one key."""
        answer: betimes.wire.queues.KeyRate = await self._caller.call(
            table.RATE_LIMITS_GET,
            path={"key": key},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        key: str,
        *,
        limit: int,
        per: str | float | Unset = UNSET,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.KeyRate:
        """Say how many runs of a rate limit key may start in a time."""
        answer: betimes.wire.queues.KeyRate = await self._caller.call(
            table.RATE_LIMITS_PUT,
            path={"key": key},
            body={"limit": limit, "per": per},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        key: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Say nothing about a rate limit key any more."""
        answer: None = await self._caller.call(
            table.RATE_LIMITS_DELETE,
            path={"key": key},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncUsage:
    """Operations of usage."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def read(
        self,
        *,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        group_by: Literal["day", "queue", "job"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.insights.Usage:
        """What the tenant has used in a span, by day, queue or job."""
        answer: betimes.wire.insights.Usage = await self._caller.call(
            table.USAGE_READ,
            query={"from": from_, "to": to, "group_by": group_by},
            timeout=request_timeout,
        )
        return answer


class AsyncBlobs:
    """Operations of blobs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        content: bytes,
        ttl: str | float | Unset | None = UNSET,
        retention: Literal["brief", "standard", "long", "archive"] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Blob:
        """Keep a body as it is, to be referred to."""
        answer: betimes.wire.queues.Blob = await self._caller.call(
            table.BLOBS_CREATE,
            query={"ttl": ttl, "retention": retention},
            body=content,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        blob: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """A blob as it was given."""
        answer: bytes = await self._caller.call(
            table.BLOBS_GET,
            path={"blob": blob},
            timeout=request_timeout,
        )
        return answer

    async def grant(
        self,
        blob: str,
        *,
        expires_in: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.queues.Grant:
        """Make a link that reads one blob until it expires, without a key."""
        answer: betimes.wire.queues.Grant = await self._caller.call(
            table.BLOBS_GRANT,
            path={"blob": blob},
            body={"expires_in": expires_in},
            timeout=request_timeout,
        )
        return answer

    async def read_granted(
        self,
        grant: str,
        *,
        request_timeout: float | None = None,
    ) -> bytes:
        """The blob of a link."""
        answer: bytes = await self._caller.call(
            table.BLOBS_READ_GRANTED,
            path={"grant": grant},
            timeout=request_timeout,
        )
        return answer


class AsyncWorkers:
    """Operations of workers."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def register(
        self,
        *,
        name: str,
        queues: builtins.list[str] | Unset = UNSET,
        handlers: collections.abc.Sequence[
            betimes.wire.workers.DeclaredHandler | collections.abc.Mapping[str, Any] | str
        ]
        | Unset = UNSET,
        slots: int | Unset = UNSET,
        version: str | Unset = UNSET,
        host: str | Unset = UNSET,
        pid: int | Unset | None = UNSET,
        sdk: dict[str, Any] | Unset = UNSET,
        labels: dict[str, str] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Registered:
        """Make a worker known."""
        answer: betimes.wire.workers.Registered = await self._caller.call(
            table.WORKERS_REGISTER,
            body={
                "name": name,
                "queues": queues,
                "handlers": handlers,
                "slots": slots,
                "version": version,
                "host": host,
                "pid": pid,
                "sdk": sdk,
                "labels": labels,
            },
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.workers.Worker]:
        """List workers."""
        answer: AsyncPages[betimes.wire.workers.Worker] = self._caller.pages(
            table.WORKERS_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Worker:
        """Read one worker."""
        answer: betimes.wire.workers.Worker = await self._caller.call(
            table.WORKERS_GET,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        worker: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget a worker; what it holds is given to others at once."""
        answer: None = await self._caller.call(
            table.WORKERS_DELETE,
            path={"worker": worker},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def drain(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Worker:
        """Tell a worker to finish; it hears of it with its next heartbeat."""
        answer: betimes.wire.workers.Worker = await self._caller.call(
            table.WORKERS_DRAIN,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    async def leave(
        self,
        worker: str,
        *,
        request_timeout: float | None = None,
    ) -> None:
        """A worker goes; what it still holds comes back when its leases run out."""
        answer: None = await self._caller.call(
            table.WORKERS_LEAVE,
            path={"worker": worker},
            timeout=request_timeout,
        )
        return answer

    async def heartbeat(
        self,
        worker: str,
        *,
        running: collections.abc.Sequence[
            betimes.wire.workers.RunningLease | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        parcels: collections.abc.Sequence[
            betimes.wire.workers.RunningParcel | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        busy: int | Unset | None = UNSET,
        free_slots: int | Unset | None = UNSET,
        state: Literal["ok", "draining"] | Unset = UNSET,
        rss: int | Unset | None = UNSET,
        cpu: float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.HeartbeatAnswer:
        """A sign of life: renews every lease it names."""
        answer: betimes.wire.workers.HeartbeatAnswer = await self._caller.call(
            table.WORKERS_HEARTBEAT,
            path={"worker": worker},
            body={
                "running": running,
                "parcels": parcels,
                "busy": busy,
                "free_slots": free_slots,
                "state": state,
                "rss": rss,
                "cpu": cpu,
            },
            timeout=request_timeout,
        )
        return answer

    async def lease_parcels(
        self,
        worker: str,
        *,
        max: int | Unset = UNSET,
        wait: float | Unset = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        handlers: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.parcels.LeasedParcels:
        """Whole parcels of work, each under one lease, as soon as there are some or patience ends."""
        answer: betimes.wire.parcels.LeasedParcels = await self._caller.call(
            table.WORKERS_LEASE_PARCELS,
            path={"worker": worker},
            body={"max": max, "wait": wait, "queues": queues, "handlers": handlers},
            timeout=request_timeout,
        )
        return answer

    async def lease(
        self,
        worker: str,
        *,
        max: int | Unset = UNSET,
        wait: float | Unset = UNSET,
        queues: builtins.list[str] | Unset | None = UNSET,
        handlers: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.LeasedRuns:
        """Runs one by one, as soon as there are some or patience ends."""
        answer: betimes.wire.workers.LeasedRuns = await self._caller.call(
            table.WORKERS_LEASE,
            path={"worker": worker},
            body={"max": max, "wait": wait, "queues": queues, "handlers": handlers},
            timeout=request_timeout,
        )
        return answer


class AsyncLeases:
    """Operations of leases."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def report(
        self,
        *,
        parcels: collections.abc.Sequence[
            betimes.wire.parcels.ParcelReport | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.parcels.ParcelsReported:
        """What became of runs of parcels: successes as sets, everything else one by one."""
        answer: betimes.wire.parcels.ParcelsReported = await self._caller.call(
            table.LEASES_REPORT,
            body={"parcels": parcels},
            timeout=request_timeout,
        )
        return answer

    async def complete(
        self,
        lease: str,
        *,
        result: Any | Unset = UNSET,
        result_ref: str | Unset | None = UNSET,
        metrics: dict[str, float] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """The run ended well."""
        answer: betimes.wire.workers.Settled = await self._caller.call(
            table.LEASES_COMPLETE,
            path={"lease": lease},
            body={"result": result, "result_ref": result_ref, "metrics": metrics},
            timeout=request_timeout,
        )
        return answer

    async def fail(
        self,
        lease: str,
        *,
        error: betimes.wire.workers.ErrorTold | collections.abc.Mapping[str, Any] | Unset = UNSET,
        retry: Literal["auto", "never"]
        | betimes.wire.workers.RetryAfter
        | collections.abc.Mapping[str, Any]
        | Unset = UNSET,
        result: Any | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """The attempt failed."""
        answer: betimes.wire.workers.Settled = await self._caller.call(
            table.LEASES_FAIL,
            path={"lease": lease},
            body={"error": error, "retry": retry, "result": result},
            timeout=request_timeout,
        )
        return answer

    async def cancel(
        self,
        lease: str,
        *,
        reason: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """End the run as cancelled."""
        answer: betimes.wire.workers.Settled = await self._caller.call(
            table.LEASES_CANCEL,
            path={"lease": lease},
            body={"reason": reason},
            timeout=request_timeout,
        )
        return answer

    async def release(
        self,
        lease: str,
        *,
        reason: str | Unset = UNSET,
        after: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """Give a run back unfinished."""
        answer: betimes.wire.workers.Settled = await self._caller.call(
            table.LEASES_RELEASE,
            path={"lease": lease},
            body={"reason": reason, "after": after},
            timeout=request_timeout,
        )
        return answer

    async def snooze(
        self,
        lease: str,
        *,
        until: str | Unset | None = UNSET,
        for_: str | float | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Settled:
        """Be called again later."""
        answer: betimes.wire.workers.Settled = await self._caller.call(
            table.LEASES_SNOOZE,
            path={"lease": lease},
            body={"until": until, "for": for_},
            timeout=request_timeout,
        )
        return answer

    async def extend(
        self,
        lease: str,
        *,
        by: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.ExtendedTo:
        """Hold a run for longer."""
        answer: betimes.wire.workers.ExtendedTo = await self._caller.call(
            table.LEASES_EXTEND,
            path={"lease": lease},
            body={"by": by},
            timeout=request_timeout,
        )
        return answer

    async def progress(
        self,
        lease: str,
        *,
        percent: float | Unset | None = UNSET,
        message: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Say how far a run has come."""
        answer: betimes.wire.workers.Accepted = await self._caller.call(
            table.LEASES_PROGRESS,
            path={"lease": lease},
            body={"percent": percent, "message": message},
            timeout=request_timeout,
        )
        return answer

    async def checkpoint(
        self,
        lease: str,
        *,
        data: Any,
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Keep something for the next attempt to begin from."""
        answer: betimes.wire.workers.Accepted = await self._caller.call(
            table.LEASES_CHECKPOINT,
            path={"lease": lease},
            body={"data": data},
            timeout=request_timeout,
        )
        return answer

    async def logs(
        self,
        lease: str,
        *,
        lines: collections.abc.Sequence[
            betimes.wire.workers.LogLine | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.Accepted:
        """Add lines to the log of a run; the body may be packed with gzip."""
        answer: betimes.wire.workers.Accepted = await self._caller.call(
            table.LEASES_LOGS,
            path={"lease": lease},
            body={"lines": lines},
            timeout=request_timeout,
        )
        return answer

    async def batch(
        self,
        *,
        items: collections.abc.Sequence[
            betimes.wire.workers.ReportOne | collections.abc.Mapping[str, Any]
        ],
        request_timeout: float | None = None,
    ) -> betimes.wire.workers.ReportsDone:
        """Many reports in one transaction."""
        answer: betimes.wire.workers.ReportsDone = await self._caller.call(
            table.LEASES_BATCH,
            body={"items": items},
            timeout=request_timeout,
        )
        return answer


class AsyncExplain:
    """Operations of explain."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def find(
        self,
        *,
        job: str | Unset | None = UNSET,
        run: str | Unset | None = UNSET,
        at: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.explain.Explanation:
        """Why a job fires or does not, or why a run waits."""
        answer: betimes.wire.explain.Explanation = await self._caller.call(
            table.EXPLAIN_FIND,
            query={"job": job, "run": run, "at": at},
            timeout=request_timeout,
        )
        return answer


class AsyncForecast:
    """Operations of forecast."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def read(
        self,
        *,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        group_by: Literal["all", "queue", "handler", "tenant"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.forecast.Forecast:
        """The load ahead: fires per step, what they need, hot steps, advice."""
        answer: betimes.wire.forecast.Forecast = await self._caller.call(
            table.FORECAST_READ,
            query={"from": from_, "to": to, "step": step, "group_by": group_by},
            timeout=request_timeout,
        )
        return answer

    async def what_if(
        self,
        *,
        add: collections.abc.Sequence[
            betimes.wire.forecast.NewLoad | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        remove: builtins.list[str] | Unset = UNSET,
        change: collections.abc.Sequence[
            betimes.wire.forecast.ChangedLoad | collections.abc.Mapping[str, Any]
        ]
        | Unset = UNSET,
        slots: int | Unset | None = UNSET,
        from_: str | Unset | None = UNSET,
        to: str | Unset | None = UNSET,
        step: str | float | Unset = UNSET,
        group_by: Literal["all", "queue", "handler"] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.forecast.Compared:
        """The load as it would be with jobs added, taken away or changed; nothing is written."""
        answer: betimes.wire.forecast.Compared = await self._caller.call(
            table.FORECAST_WHAT_IF,
            body={
                "add": add,
                "remove": remove,
                "change": change,
                "slots": slots,
                "from": from_,
                "to": to,
                "step": step,
                "group_by": group_by,
            },
            timeout=request_timeout,
        )
        return answer


class AsyncEvents:
    """Operations of events."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(
        self,
        *,
        limit: int | Unset = UNSET,
        after: str | Unset | None = UNSET,
        types: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.EventPage:
        """Events after one, in order."""
        answer: betimes.wire.more.EventPage = await self._caller.call(
            table.EVENTS_LIST,
            query={"limit": limit, "after": after, "types": types},
            timeout=request_timeout,
        )
        return answer

    async def trigger(
        self,
        *,
        type: str,
        subject: str | Unset | None = UNSET,
        data: dict[str, Any] | Unset = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.Event:
        """Make an event at will, to try who is told of it."""
        answer: betimes.wire.more.Event = await self._caller.call(
            table.EVENTS_TRIGGER,
            body={"type": type, "subject": subject, "data": data},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncEndpoints:
    """Operations of endpoints."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        callbacks: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.endpoints.Endpoint]:
        """List who wants to be told, and how each fares."""
        answer: AsyncPages[betimes.wire.endpoints.Endpoint] = self._caller.pages(
            table.ENDPOINTS_LIST,
            query={"limit": limit, "callbacks": callbacks},
            timeout=request_timeout,
        )
        return answer

    async def create(
        self,
        *,
        type: Literal["webhook", "email", "chat"],
        event_types: builtins.list[str],
        url: str | Unset | None = UNSET,
        address: str | Unset | None = UNSET,
        style: Literal["slack", "teams", "discord"] | Unset = UNSET,
        name: str | Unset = UNSET,
        filter: betimes.wire.endpoints.EventFilter
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        concurrency: int | Unset = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        payload: Literal["thin", "full"] | Unset = UNSET,
        disabled: bool | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Make an endpoint; the secret of a webhook is in the answer, this once."""
        answer: betimes.wire.endpoints.Endpoint = await self._caller.call(
            table.ENDPOINTS_CREATE,
            body={
                "type": type,
                "event_types": event_types,
                "url": url,
                "address": address,
                "style": style,
                "name": name,
                "filter": filter,
                "concurrency": concurrency,
                "rate": rate,
                "payload": payload,
                "disabled": disabled,
            },
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        endpoint: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Read one endpoint."""
        answer: betimes.wire.endpoints.Endpoint = await self._caller.call(
            table.ENDPOINTS_GET,
            path={"endpoint": endpoint},
            timeout=request_timeout,
        )
        return answer

    async def update(
        self,
        endpoint: str,
        *,
        event_types: builtins.list[str] | Unset | None = UNSET,
        url: str | Unset | None = UNSET,
        address: str | Unset | None = UNSET,
        style: Literal["slack", "teams", "discord"] | Unset | None = UNSET,
        name: str | Unset | None = UNSET,
        filter: betimes.wire.endpoints.EventFilter
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        concurrency: int | Unset | None = UNSET,
        rate: betimes.wire.queues.RateLimit
        | collections.abc.Mapping[str, Any]
        | Unset
        | None = UNSET,
        payload: Literal["thin", "full"] | Unset | None = UNSET,
        disabled: bool | Unset | None = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Change an endpoint, disable it, or send to it again."""
        answer: betimes.wire.endpoints.Endpoint = await self._caller.call(
            table.ENDPOINTS_UPDATE,
            path={"endpoint": endpoint},
            body={
                "event_types": event_types,
                "url": url,
                "address": address,
                "style": style,
                "name": name,
                "filter": filter,
                "concurrency": concurrency,
                "rate": rate,
                "payload": payload,
                "disabled": disabled,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        endpoint: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget an endpoint; what waited for it is sent to nobody."""
        answer: None = await self._caller.call(
            table.ENDPOINTS_DELETE,
            path={"endpoint": endpoint},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer

    async def rotate_secret(
        self,
        endpoint: str,
        *,
        overlap: str | float | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Sign with a new secret; the present one signs beside it for a while."""
        answer: betimes.wire.endpoints.Endpoint = await self._caller.call(
            table.ENDPOINTS_ROTATE_SECRET,
            path={"endpoint": endpoint},
            body={"overlap": overlap},
            timeout=request_timeout,
        )
        return answer

    async def enable(
        self,
        endpoint: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Endpoint:
        """Send to an endpoint that was disabled; what waits goes out."""
        answer: betimes.wire.endpoints.Endpoint = await self._caller.call(
            table.ENDPOINTS_ENABLE,
            path={"endpoint": endpoint},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def redeliver(
        self,
        endpoint: str,
        *,
        since: str,
        operation_id: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Send an endpoint what failed or was never sent since an instant, as an operation."""
        answer: betimes.wire.operations.Operation = await self._caller.call(
            table.ENDPOINTS_REDELIVER,
            path={"endpoint": endpoint},
            body={"since": since, "operation_id": operation_id},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def test(
        self,
        endpoint: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Send a test and answer what came of it."""
        answer: betimes.wire.endpoints.Delivery = await self._caller.call(
            table.ENDPOINTS_TEST,
            path={"endpoint": endpoint},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    def deliveries(
        self,
        endpoint: str,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["waiting", "delivered", "failed"]] | Unset = UNSET,
        types: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.endpoints.Delivery]:
        """List what was sent to an endpoint, newest first."""
        answer: AsyncPages[betimes.wire.endpoints.Delivery] = self._caller.pages(
            table.ENDPOINTS_DELIVERIES,
            path={"endpoint": endpoint},
            query={"limit": limit, "state": state, "types": types},
            timeout=request_timeout,
        )
        return answer


class AsyncEventTypes:
    """Operations of event_types."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def list(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.EventTypes:
        """Every type of event, with the shape of its data."""
        answer: betimes.wire.endpoints.EventTypes = await self._caller.call(
            table.EVENT_TYPES_LIST,
            timeout=request_timeout,
        )
        return answer


class AsyncDeliveries:
    """Operations of deliveries."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(
        self,
        delivery: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Read one delivery, and what its last attempt was answered."""
        answer: betimes.wire.endpoints.Delivery = await self._caller.call(
            table.DELIVERIES_GET,
            path={"delivery": delivery},
            timeout=request_timeout,
        )
        return answer

    async def redeliver(
        self,
        delivery: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.endpoints.Delivery:
        """Send a delivery that is over once more, under the same id."""
        answer: betimes.wire.endpoints.Delivery = await self._caller.call(
            table.DELIVERIES_REDELIVER,
            path={"delivery": delivery},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncAlertRules:
    """Operations of alert_rules."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.alerts.Rule]:
        """List alert rules by name."""
        answer: AsyncPages[betimes.wire.alerts.Rule] = self._caller.pages(
            table.ALERT_RULES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        rule: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Rule:
        """Read one alert rule."""
        answer: betimes.wire.alerts.Rule = await self._caller.call(
            table.ALERT_RULES_GET,
            path={"rule": rule},
            timeout=request_timeout,
        )
        return answer

    async def put(
        self,
        rule: str,
        *,
        condition: Literal[
            "job_failed_n",
            "job_late",
            "job_missed",
            "job_slow",
            "no_success_since",
            "dead_letter_rate",
            "queue_lag",
            "queue_depth",
        ],
        threshold: str | float,
        window: str | float | Unset | None = UNSET,
        for_: str | float | Unset = UNSET,
        severity: Literal["info", "warning", "error", "critical"] | Unset = UNSET,
        jobs: builtins.list[str] | Unset = UNSET,
        tags: dict[str, str] | Unset = UNSET,
        queues: builtins.list[str] | Unset = UNSET,
        targets: builtins.list[str] | Unset = UNSET,
        disabled: bool | Unset = UNSET,
        force: bool | Unset = UNSET,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Rule:
        """Make or replace an alert rule."""
        answer: betimes.wire.alerts.Rule = await self._caller.call(
            table.ALERT_RULES_PUT,
            path={"rule": rule},
            query={"force": force},
            body={
                "condition": condition,
                "threshold": threshold,
                "window": window,
                "for": for_,
                "severity": severity,
                "jobs": jobs,
                "tags": tags,
                "queues": queues,
                "targets": targets,
                "disabled": disabled,
            },
            if_match=if_match,
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        rule: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """Forget an alert rule; what is open of it ends, untold."""
        answer: None = await self._caller.call(
            table.ALERT_RULES_DELETE,
            path={"rule": rule},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncAlerts:
    """Operations of alerts."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["pending", "firing", "resolved"]] | Unset = UNSET,
        rule: str | Unset | None = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.alerts.Alert]:
        """List what alert rules have found, newest first."""
        answer: AsyncPages[betimes.wire.alerts.Alert] = self._caller.pages(
            table.ALERTS_LIST,
            query={"limit": limit, "state": state, "rule": rule},
            timeout=request_timeout,
        )
        return answer


class AsyncSilences:
    """Operations of silences."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.alerts.Silence]:
        """List silences that are not over."""
        answer: AsyncPages[betimes.wire.alerts.Silence] = self._caller.pages(
            table.SILENCES_LIST,
            query={"limit": limit},
            timeout=request_timeout,
        )
        return answer

    async def create(
        self,
        *,
        until: str,
        reason: str,
        rule: str | Unset | None = UNSET,
        subject: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.alerts.Silence:
        """Tell nobody of a rule or a subject for a while."""
        answer: betimes.wire.alerts.Silence = await self._caller.call(
            table.SILENCES_CREATE,
            body={"until": until, "reason": reason, "rule": rule, "subject": subject},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer

    async def delete(
        self,
        silence: str,
        *,
        if_match: str | None = None,
        request_timeout: float | None = None,
    ) -> None:
        """End a silence before its time."""
        answer: None = await self._caller.call(
            table.SILENCES_DELETE,
            path={"silence": silence},
            if_match=if_match,
            timeout=request_timeout,
        )
        return answer


class AsyncOperations:
    """Operations of operations."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        limit: int | Unset = UNSET,
        state: builtins.list[Literal["pending", "running", "succeeded", "failed", "cancelled"]]
        | Unset = UNSET,
        kind: builtins.list[str] | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> AsyncPages[betimes.wire.operations.Operation]:
        """List long work, newest first."""
        answer: AsyncPages[betimes.wire.operations.Operation] = self._caller.pages(
            table.OPERATIONS_LIST,
            query={"limit": limit, "state": state, "kind": kind},
            timeout=request_timeout,
        )
        return answer

    async def get(
        self,
        operation: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """How far an operation is, and what became of it."""
        answer: betimes.wire.operations.Operation = await self._caller.call(
            table.OPERATIONS_GET,
            path={"operation": operation},
            timeout=request_timeout,
        )
        return answer

    async def cancel(
        self,
        operation: str,
        *,
        idempotency_key: str | None = None,
        request_timeout: float | None = None,
    ) -> betimes.wire.operations.Operation:
        """Stop an operation where it is; what was done stays done."""
        answer: betimes.wire.operations.Operation = await self._caller.call(
            table.OPERATIONS_CANCEL,
            path={"operation": operation},
            idempotency_key=idempotency_key,
            timeout=request_timeout,
        )
        return answer


class AsyncCluster:
    """Operations of cluster."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """The cell."""
        answer: betimes.wire.more.ClusterShown = await self._caller.call(
            table.CLUSTER_GET,
            timeout=request_timeout,
        )
        return answer

    async def shards(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ShardList:
        """Every shard and its owner."""
        answer: betimes.wire.more.ShardList = await self._caller.call(
            table.CLUSTER_SHARDS,
            timeout=request_timeout,
        )
        return answer

    async def nodes(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.NodeList:
        """Every process of the service."""
        answer: betimes.wire.more.NodeList = await self._caller.call(
            table.CLUSTER_NODES,
            timeout=request_timeout,
        )
        return answer

    async def pause(
        self,
        *,
        reason: str | Unset = UNSET,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """Lease nothing in the whole cell until it is resumed."""
        answer: betimes.wire.more.ClusterShown = await self._caller.call(
            table.CLUSTER_PAUSE,
            body={"reason": reason},
            timeout=request_timeout,
        )
        return answer

    async def resume(
        self,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.ClusterShown:
        """Let the brake go."""
        answer: betimes.wire.more.ClusterShown = await self._caller.call(
            table.CLUSTER_RESUME,
            timeout=request_timeout,
        )
        return answer

    async def drain_node(
        self,
        node: str,
        *,
        request_timeout: float | None = None,
    ) -> betimes.wire.more.NodeShown:
        """Ask a node to finish what it holds and to stop."""
        answer: betimes.wire.more.NodeShown = await self._caller.call(
            table.CLUSTER_DRAIN_NODE,
            path={"node": node},
            timeout=request_timeout,
        )
        return answer


class AsyncResources(AsyncMeta):
    """Every group of operations."""

    def __init__(self, caller: AsyncCaller) -> None:
        super().__init__(caller)
        self.tenants = AsyncTenants(caller)
        self.quotas = AsyncQuotas(caller)
        self.keys = AsyncKeys(caller)
        self.members = AsyncMembers(caller)
        self.sessions = AsyncSessions(caller)
        self.auth = AsyncAuth(caller)
        self.jobs = AsyncJobs(caller)
        self.search = AsyncSearch(caller)
        self.import_ = AsyncImport(caller)
        self.export = AsyncExport(caller)
        self.schedules = AsyncSchedules(caller)
        self.upcoming = AsyncUpcoming(caller)
        self.calendars = AsyncCalendars(caller)
        self.targets = AsyncTargets(caller)
        self.secrets = AsyncSecrets(caller)
        self.runs = AsyncRuns(caller)
        self.workflows = AsyncWorkflows(caller)
        self.workflow_runs = AsyncWorkflowRuns(caller)
        self.audit = AsyncAudit(caller)
        self.catchups = AsyncCatchups(caller)
        self.dead_letters = AsyncDeadLetters(caller)
        self.queues = AsyncQueues(caller)
        self.rate_limits = AsyncRateLimits(caller)
        self.usage = AsyncUsage(caller)
        self.blobs = AsyncBlobs(caller)
        self.workers = AsyncWorkers(caller)
        self.leases = AsyncLeases(caller)
        self.explain = AsyncExplain(caller)
        self.forecast = AsyncForecast(caller)
        self.events = AsyncEvents(caller)
        self.endpoints = AsyncEndpoints(caller)
        self.event_types = AsyncEventTypes(caller)
        self.deliveries = AsyncDeliveries(caller)
        self.alert_rules = AsyncAlertRules(caller)
        self.alerts = AsyncAlerts(caller)
        self.silences = AsyncSilences(caller)
        self.operations = AsyncOperations(caller)
        self.cluster = AsyncCluster(caller)
