"""Workflows in files: what `betimes apply` brings to the service, and `betimes diff` compares."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from betimes.cli.command import Talk
from betimes.cli.surface import OFFERS
from betimes.domain.errors import Invalid
from betimes.schedule.duration import read_duration

USUAL = {"when": "all_success", "queue": "default", "priority": 5}
CREATED = 201


def workflows_of(written: Any, file: Path) -> dict[str, dict[str, Any]]:
    """Workflows by name, or as a list of objects with a `name`."""
    if isinstance(written, Mapping):
        found = {str(name): one for name, one in written.items()}
    elif isinstance(written, list) and all(isinstance(one, Mapping) for one in written):
        found = {str(one.get("name", "-")): {**one} for one in written}
        for one in found.values():
            one.pop("name", None)
    else:
        raise Invalid(f"expected workflows by name in {file}, got {type(written).__name__}")
    for name, one in found.items():
        if not isinstance(one, dict) or "nodes" not in one:
            raise Invalid(f"expected nodes in the workflow {name!r} in {file}, got none")
    return found


def put_workflows(talk: Talk, declared: Mapping[str, dict[str, Any]]) -> list[str]:
    """Bring them; those that have a new version."""
    changed = []
    for name, definition in declared.items():
        response = talk.session.response(
            OFFERS["workflows.put"], {"workflow": name}, body=definition
        )
        if response.status == CREATED:
            changed.append(name)
    return changed


def changed_workflows(talk: Talk, declared: Mapping[str, dict[str, Any]]) -> list[str]:
    """Those that would have a new version."""
    return [name for name, one in declared.items() if plain(one) != _known(talk, name)]


def _known(talk: Talk, name: str) -> dict[str, Any] | None:
    from betimes.sdk.errors import NotFound  # noqa: PLC0415 -- see Talk

    try:
        told = talk.session.call(
            OFFERS["workflows.get"], {"workflow": name}, query={"view": "full"}
        )
    except NotFound:
        return None
    return plain(told)


def plain(told: Mapping[str, Any]) -> dict[str, Any]:
    """A definition without what need not be said, so that two of them can be compared."""
    timeout = told.get("timeout")
    return {
        "nodes": {name: _node(node) for name, node in told["nodes"].items()},
        "failure_policy": told.get("failure_policy") or "fail_fast",
        "timeout": None if timeout is None else read_duration(timeout).elapsed(),
        "input_schema": told.get("input_schema"),
    }


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: one
        for name, one in node.items()
        if one not in (None, [], {}) and USUAL.get(name) != one
    }
    found: dict[str, Any] = json.loads(json.dumps(kept, sort_keys=True))
    return found
