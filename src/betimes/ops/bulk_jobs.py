"""Actions over many jobs: the verbs of control, and members that all of them get."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from betimes.domain.ids import JobId
from betimes.domain.job import Definition, Job
from betimes.ops.bulk import Bulk
from betimes.ops.contents import opened_definition
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job, delete_job
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.update import change_job
from betimes.store.operations import Operation

JOBS = "jobs.bulk"


async def _pause(desk: Desk, operation: Operation, job: UUID) -> object:
    return await pause_job(
        desk, operation.tenant, JobId(job), reason=_reason(operation), actor=_actor(operation)
    )


async def _resume(desk: Desk, operation: Operation, job: UUID) -> object:
    return await resume_job(desk, operation.tenant, JobId(job))


async def _cancel(desk: Desk, operation: Operation, job: UUID) -> object:
    return await cancel_job(
        desk, operation.tenant, JobId(job), reason=_reason(operation), actor=_actor(operation)
    )


async def _delete(desk: Desk, operation: Operation, job: UUID) -> object:
    await delete_job(desk, operation.tenant, JobId(job), actor=_actor(operation))
    return job


async def _set(desk: Desk, operation: Operation, job: UUID) -> object:
    async def change(found: Job) -> Definition:
        wanted = changed(found.definition, operation.request["set"])
        return await opened_definition(desk, operation.tenant, wanted)

    return await change_job(desk, operation.tenant, JobId(job), change, actor=_actor(operation))


def change_of(definition: Definition, names: Mapping[str, str | None]) -> dict[str, Any]:
    """What of a definition is to be set, as an operation keeps it.

    `names` says which members were named, and under which option each is stored, if under one.
    """
    told: dict[str, Any] = {"options": {}}
    for name, option in names.items():
        if option is not None:
            told["options"][option] = definition.options.get(option)
        elif name == "payload":
            payload = definition.payload
            told[name] = None if payload is None else b64encode(payload).decode()
        else:
            told[name] = getattr(definition, name)
    return told


def changed(definition: Definition, change: Mapping[str, Any]) -> Definition:
    """A definition with what `change_of` wrote down."""
    options = {**definition.options, **change["options"]}
    said: dict[str, Any] = {
        name: change[name] for name in ("queue", "priority", "handler") if name in change
    }
    if "payload" in change:
        payload = change["payload"]
        said["payload"] = None if payload is None else b64decode(payload)
    kept = {name: value for name, value in options.items() if value is not None}
    return replace(definition, options=kept, **said)


def _reason(operation: Operation) -> str:
    return str(operation.request.get("reason", ""))


def _actor(operation: Operation) -> str | None:
    return operation.created_by


BULK_JOBS = Bulk(
    prefix="job",
    member="jobs",
    verbs=MappingProxyType(
        {
            "pause": (_pause, "job.paused"),
            "resume": (_resume, "job.resumed"),
            "cancel": (_cancel, "job.cancelled"),
            "delete": (_delete, "job.deleted"),
            "set": (_set, "job.updated"),
        }
    ),
)
