"""What a job was and is: who made each definition, and what it changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from betimes.api.definitions import definition_shown
from betimes.api.targets import HIDDEN, shown_target
from betimes.domain.job import Definition, Job
from betimes.ops.read import Kept
from betimes.wire.base import shown_bytes, shown_instant, shown_maybe
from betimes.wire.revisions import Change, Revision

ABSENT = object()
SEALED = frozenset({"/payload", *(f"/target/{name}" for name in HIDDEN)})
"""What only keys that may read payloads see the contents of."""


def shown_revisions(job: Job, kept: Sequence[Kept], *, full: bool = False) -> Iterator[Revision]:
    """All that is known of a job, newest first."""
    # What was replaced after the job was read is still the current one here.
    older = [one for one in kept if one.revision < job.revision]
    later: Kept | None = None
    numbers = (job.revision, *(one.revision for one in older))
    definitions = (job.definition, *(one.definition for one in older))
    for place, (number, definition) in enumerate(zip(numbers, definitions, strict=True)):
        before = older[place] if place < len(older) else None
        made_at, author = _made(job, number, before)
        yield Revision(
            revision=number,
            current=later is None,
            made_at=made_at,
            author=author,
            replaced_at=None if later is None else shown_instant(later.replaced_at),
            replaced_by=None if later is None else later.replaced_by,
            definition=_whole(definition) if full else definition_shown(definition),
            diff=_diff(number, before, definition, full=full),
        )
        later = before


def _made(job: Job, number: int, before: Kept | None) -> tuple[str | None, str | None]:
    """When and by whom: whoever replaced the one before made this one."""
    if before is not None:
        return shown_instant(before.replaced_at), before.replaced_by
    return (shown_maybe(job.created_at), job.created_by) if number == 1 else (None, None)


def _diff(
    number: int, before: Kept | None, definition: Definition, *, full: bool
) -> list[Change] | None:
    """Nothing for the first; None where the one before is not known any more."""
    if before is None:
        return [] if number == 1 else None
    found = changes(_whole(before.definition), _whole(definition))
    return found if full else _without_contents(found)


def _whole(definition: Definition) -> dict[str, Any]:
    """A definition with its payload, if it has one."""
    shown = definition_shown(definition)
    shown["target"] = shown_target(definition.target, full=True) or {}
    if definition.payload is not None:
        shown["payload"] = shown_bytes(definition.payload)
    return shown


def changes(old: Any, new: Any, path: str = "") -> list[Change]:
    """What differs, by JSON pointer; objects member by member, anything else as a whole."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            change
            for name in sorted({*old, *new})
            for change in changes(
                old.get(name, ABSENT), new.get(name, ABSENT), f"{path}/{_escaped(name)}"
            )
        ]
    if old is ABSENT:
        return [Change(op="add", path=path, new=new)]
    if new is ABSENT:
        return [Change(op="remove", path=path, old=old)]
    # 1 and true are equal in Python, and 1 and 1.0; in JSON they are not the same to everybody.
    same = type(old) is type(new) and old == new
    return [] if same else [Change(op="replace", path=path, old=old, new=new)]


def _without_contents(found: Sequence[Change]) -> list[Change]:
    """The same for eyes that may not see payloads: that they differ, and nothing else."""
    told: dict[str, Change] = {}
    for one in found:
        place = next((name for name in SEALED if f"{one.path}/".startswith(f"{name}/")), None)
        if place is None:
            told[one.path] = one
        else:
            op = one.op if one.path == place else "replace"
            told[place] = Change(op=op, path=place, hidden=True)
    return list(told.values())


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
