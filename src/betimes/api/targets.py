"""Targets between wire and domain, both ways; what may not be called is refused here first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from betimes.api.call import Call
from betimes.api.shaping import maybe_limit
from betimes.domain.errors import BadTarget, Forbidden, Refused
from betimes.domain.origins import covers, shown_origins
from betimes.domain.scopes import Scope
from betimes.domain.spec import from_ms, to_ms
from betimes.ops.checks import check_name
from betimes.target.auth import references_in
from betimes.target.definition import HttpTarget, read_target
from betimes.target.policy import redaction_for
from betimes.target.redact import Redaction
from betimes.target.url import UrlPolicy
from betimes.wire import jobs as wire
from betimes.wire.base import shown_duration
from betimes.wire.workflow_target import WorkflowTarget

HIDDEN = frozenset({"headers", "body", "body_base64"})
"""Members that are shown only to who may read payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a caller may have called, and whether with secrets."""

    policy: UrlPolicy = field(default_factory=UrlPolicy)
    uses_secrets: bool = False
    """Whether the caller has `secrets:use`."""
    bound: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Where the secrets that are named may be sent, as far as they exist."""
    kept: Sequence[Mapping[str, Any]] = ()
    """Targets that are stored already: to leave one as it is asks for nothing."""

    def check(self, stored: Mapping[str, Any], target: HttpTarget) -> None:
        """Refuse a target that takes secrets along which are not the caller's to send there.

        Raises:
            Forbidden: the caller may not use secrets.
            BadTarget: a secret is not bound to where it would go.

        """
        if not target.secrets or stored in self.kept:
            return
        if not self.uses_secrets:
            raise Forbidden(
                f"a target with the secret {target.secrets[0]!r} needs the scope "
                f"{Scope.SECRETS_USE}: to say where a secret goes is to be able to read it"
            )
        for name, origins in target.sent_to.items():
            bound = self.bound.get(name)
            for origin in origins:
                if bound is not None and not covers(bound, origin):
                    raise BadTarget(
                        f"expected a URL at {shown_origins(bound)}, which the secret {name!r} is "
                        f"bound to, got {origin}",
                        pointer="/target/url",
                    )


def secrets_named(targets: Iterable[wire.Target | None]) -> set[str]:
    """The names of secrets that targets refer to, as they are asked for."""
    found: set[str] = set()
    for target in targets:
        if isinstance(target, wire.HttpTarget):
            found.update(references_in([*target.headers.values(), target.ca_certificates or ""]))
            named = (target.client_certificate, target.secret_ref)
            found.update(name for name in named if name)
            if target.auth is not None:
                found.add(target.auth.secret)
    return found


def work_of(
    handler: str | None, target: wire.Target | None, rules: Rules
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
    return None, stored_target(target, rules)


def stored_target(asked: wire.HttpTarget | WorkflowTarget, rules: Rules) -> dict[str, Any]:
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
    read = read_target(stored, rules.policy)
    stored["url"] = str(read.url)
    rules.check(stored, read)
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
