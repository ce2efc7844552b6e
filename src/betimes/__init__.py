"""Betimes: a distributed, multi-tenant job scheduler.

*betimes* (adv.): in good time, before it is too late.

Importing this imports next to nothing: each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from betimes.sdk import aio as aio
    from betimes.sdk import errors as errors
    from betimes.sdk.application import App as App
    from betimes.sdk.builder import WorkflowBuilder as WorkflowBuilder
    from betimes.sdk.client import AsyncClient as AsyncClient
    from betimes.sdk.client import Client as Client
    from betimes.sdk.context import Context as Context
    from betimes.sdk.context import current_context as current_context
    from betimes.sdk.control import Cancelled as Cancelled
    from betimes.sdk.control import PermanentError as PermanentError
    from betimes.sdk.control import Retry as Retry
    from betimes.sdk.control import Snooze as Snooze
    from betimes.sdk.handle import RunFailed as RunFailed
    from betimes.sdk.handle import RunHandle as RunHandle
    from betimes.sdk.middleware import AttemptEnd as AttemptEnd
    from betimes.sdk.middleware import Middleware as Middleware
    from betimes.sdk.reference import Node as Node
    from betimes.sdk.shapes import Unfit as Unfit
    from betimes.sdk.task import Task as Task
    from betimes.sdk.tracing import OpenTelemetryMiddleware as OpenTelemetryMiddleware
    from betimes.sdk.workflow import Workflow as Workflow
    from betimes.sdk.workflow_handle import WorkflowHandle as WorkflowHandle
    from betimes.sdk.workflow_handle import WorkflowRunFailed as WorkflowRunFailed

_HOMES = {
    "App": "application",
    "AsyncClient": "client",
    "AttemptEnd": "middleware",
    "Cancelled": "control",
    "Client": "client",
    "Context": "context",
    "Middleware": "middleware",
    "Node": "reference",
    "OpenTelemetryMiddleware": "tracing",
    "PermanentError": "control",
    "Retry": "control",
    "RunFailed": "handle",
    "RunHandle": "handle",
    "Snooze": "control",
    "Task": "task",
    "Unfit": "shapes",
    "Workflow": "workflow",
    "WorkflowBuilder": "builder",
    "WorkflowHandle": "workflow_handle",
    "WorkflowRunFailed": "workflow_handle",
    "current_context": "context",
}

_MODULES = ("aio", "errors")

__all__ = [
    "App",
    "AsyncClient",
    "AttemptEnd",
    "Cancelled",
    "Client",
    "Context",
    "Middleware",
    "Node",
    "OpenTelemetryMiddleware",
    "PermanentError",
    "Retry",
    "RunFailed",
    "RunHandle",
    "Snooze",
    "Task",
    "Unfit",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowHandle",
    "WorkflowRunFailed",
    "aio",
    "current_context",
    "errors",
]


def __getattr__(name: str) -> object:
    """Load a public name from where it lives."""
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'betimes' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 -- only when something is asked for

    home = import_module(f"betimes.sdk.{_HOMES.get(name, name)}")
    found: object = home if name in _MODULES else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Names that can be asked for."""
    return sorted({*globals(), *__all__})
