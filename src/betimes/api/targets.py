"""Targets between wire and domain, both ways; what may not be called is refused here first."""

from collections.abc import Mapping
from typing import Any

import msgspec

from betimes.api.call import Call
from betimes.api.shaping import maybe_limit
from betimes.domain.errors import Refused
from betimes.domain.spec import from_ms, to_ms
from betimes.ops.checks import check_name
from betimes.target.definition import read_target
from betimes.target.policy import redaction_for
from betimes.target.redact import Redaction
from betimes.target.url import UrlPolicy
from betimes.wire import jobs as wire
from betimes.wire.base import shown_duration
from betimes.wire.workflow_target import WorkflowTarget

HIDDEN = frozenset({"headers", "body", "body_base64"})
"""Members that are shown only to who may read payloads."""


def work_of(
    handler: str | None, target: wire.Target | None, policy: UrlPolicy
) -> tuple[str | None, dict[str, Any]]:
    """The handler and the stored target that a body asks for; at most one of them is set."""
    if target is None:
        return handler, {}
    if isinstance(target, wire.TaskTarget):
        if handler not in (None, target.handler):
            raise _both()
        return target.handler, {}
    if handler is not None:
        raise _both()
    return None, stored_target(target, policy)


def stored_target(asked: wire.HttpTarget | WorkflowTarget, policy: UrlPolicy) -> dict[str, Any]:
    """A target as it is kept: only what differs from the default, and checked."""
    stored = {
        name: value
        for name, value in msgspec.to_builtins(asked).items()
        if value not in (None, [], {}) and (name, value) != ("follow_redirects", 0)
    }
    if isinstance(asked, WorkflowTarget):
        check_name(asked.workflow, pointer="/target/workflow")
        return stored
    timeout = maybe_limit(stored.pop("timeout", None), pointer="/target/timeout")
    if timeout is not None:
        stored["timeout_ms"] = to_ms(timeout)
    stored["url"] = str(read_target(stored, policy).url)
    return stored


def shown_target(stored: Mapping[str, Any], *, full: bool) -> dict[str, Any] | None:
    """A stored target as it is shown; in full it can be sent back."""
    shown = {name: value for name, value in stored.items() if full or name not in HIDDEN}
    if (timeout := shown.pop("timeout_ms", None)) is not None:
        shown["timeout"] = shown_duration(from_ms(timeout))
    return shown or None


def redaction_of(call: Call[Any, Any]) -> Redaction:
    """What answers to a caller leave out: what the operator hides, and what its tenant does."""
    return redaction_for(call.service.targets, call.caller.settings)


def _both() -> Refused:
    return Refused(
        "expected a handler or a target, got both", code="invalid_parameter", pointer="/target"
    )
