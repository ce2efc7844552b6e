"""What is said about runs, sealed like what they were given: errors, evidence, notes, log lines.

Their columns hold JSON or text, so what is sealed is a word in base64 that stands where nobody but
us can put one:

    error, evidence   {"type": ..., "sealed": WORD}: objects that we make, whatever is in them
    log line          `fields` is the word itself, where it is an object otherwise; no message
    note              the message begins with a mark, which is taken off what workers say

The type of an error stays readable: operators count by it, and it is a name and not a value.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from betimes.domain.errors import Locked
from betimes.domain.ids import TenantId
from betimes.domain.run import Run
from betimes.ops.contents import Keys, is_sealed, opening_keys, sealing_keys
from betimes.ops.desk import Desk
from betimes.store.audit import EventRow
from betimes.store.dead_letters import Attempt, DeadLetter, LetterGroup
from betimes.store.deliveries import Delivery
from betimes.store.ending import Ending
from betimes.store.pool import Connection
from betimes.store.run_notes import LogLine, Note

T = TypeVar("T")
Json = Mapping[str, Any]
SEALED = "sealed"
MARK = "\x01betimes\x01"


def seal_error(keys: Keys, error: str | None) -> str | None:
    """An error as JSON, of which only the type can be read."""
    if error is None:
        return None
    said = json.loads(error)
    if SEALED in said:
        return error
    kind = said.pop("type", None)
    return json.dumps({"type": kind, SEALED: _word(keys, said)})


def seal_evidence(keys: Keys, evidence: str | None) -> str | None:
    """What is kept of an exchange, of which nothing can be read."""
    return None if evidence is None else json.dumps({SEALED: _word(keys, json.loads(evidence))})


def open_members(keys: Keys, said: Json) -> Json:
    """An error or evidence as it was; what was never sealed as it is."""
    word = said.get(SEALED)
    if not isinstance(word, str):
        return said
    rest = {name: value for name, value in said.items() if name != SEALED}
    return {**rest, **_said(keys, word)}


def is_sealed_text(error: str | None) -> bool:
    """Whether an error, as JSON, is sealed."""
    return error is not None and _has(json.loads(error))


def open_text(keys: Keys, error: str | None) -> str | None:
    """An error, as JSON, as it was."""
    return None if error is None else json.dumps(dict(open_members(keys, json.loads(error))))


def seal_response(keys: Keys, response: Json) -> Json:
    """What an endpoint answered, of which nothing can be read."""
    return {SEALED: _word(keys, response)} if response else response


def seal_ending(keys: Keys, ending: Ending) -> Ending:
    """The end of an attempt as it goes into its rows."""
    if ending.error is None:
        return ending
    attempted = ending.attempted
    if attempted is not None:
        attempted = attempted._replace(http=seal_evidence(keys, attempted.http))
    return replace(ending, error=seal_error(keys, ending.error), attempted=attempted)


def seal_line(keys: Keys, line: LogLine) -> LogLine:
    """A line of which time and level can be read."""
    word = _word(keys, {"message": line.message, "fields": dict(line.fields)})
    return replace(line, message="", fields={}, sealed=word)


def open_line(keys: Keys, line: LogLine) -> LogLine:
    """The line as it was written."""
    if line.sealed is None:
        return line
    said = _said(keys, line.sealed)
    return replace(line, message=said["message"], fields=said["fields"], sealed=None)


def seal_note(keys: Keys, note: Note) -> Note:
    """A note of which the percentage can be read."""
    message = note.message
    if message is not None:
        message = MARK + _word(keys, {"message": message})
    return note._replace(message=message, checkpoint=keys.seal(note.checkpoint))


def open_note(keys: Keys, note: Note) -> Note:
    """The note as it was given."""
    message = note.message
    if message is not None and message.startswith(MARK):
        message = _said(keys, message.removeprefix(MARK))["message"]
    return note._replace(message=message, checkpoint=keys.open(note.checkpoint))


def unmarked(note: Note) -> Note:
    """A note that cannot be taken for a sealed one."""
    if note.message is None or not note.message.startswith(MARK[0]):
        return note
    return note._replace(message=note.message.lstrip(MARK[0]))


async def sealed_note(desk: Desk, connection: Connection, tenant: TenantId, note: Note) -> Note:
    """A note as it goes into its row."""
    note = unmarked(note)
    if not desk.seals or (note.message is None and note.checkpoint is None):
        return note
    return seal_note(await sealing_keys(desk, connection, tenant), note)


async def sealed_lines(
    desk: Desk, connection: Connection, tenant: TenantId, lines: Sequence[LogLine]
) -> Sequence[LogLine]:
    """Lines as they go into their rows."""
    if not desk.seals or not lines:
        return lines
    keys = await sealing_keys(desk, connection, tenant)
    return [seal_line(keys, one) for one in lines]


async def open_lines(
    desk: Desk, connection: Connection, tenant: TenantId, lines: Sequence[LogLine]
) -> list[LogLine]:
    """Lines as they were written."""
    return await _opened(
        desk, connection, tenant, lines, lambda one: one.sealed is not None, open_line
    )


async def open_notes(
    desk: Desk, connection: Connection, tenant: TenantId, notes: Sequence[Note]
) -> list[Note]:
    """Notes as they were given."""
    return await _opened(desk, connection, tenant, notes, _is_sealed_note, open_note)


async def open_errors(
    desk: Desk, connection: Connection, tenant: TenantId, runs: Sequence[Run]
) -> list[Run]:
    """Runs with what they failed of."""

    def opened(keys: Keys, run: Run) -> Run:
        return replace(run, error=open_members(keys, run.error or {}))

    return await _opened(desk, connection, tenant, runs, lambda one: _has(one.error), opened)


async def open_attempts(
    desk: Desk, connection: Connection, tenant: TenantId, attempts: Sequence[Attempt]
) -> list[Attempt]:
    """Attempts with their errors and evidence."""

    def opened(keys: Keys, one: Attempt) -> Attempt:
        error, http = open_members(keys, one.error), open_members(keys, one.http)
        return replace(one, error=error, http=http)

    return await _opened(
        desk, connection, tenant, attempts, lambda one: _has(one.error) or _has(one.http), opened
    )


async def open_letters(
    desk: Desk, connection: Connection, tenant: TenantId, letters: Sequence[DeadLetter]
) -> list[DeadLetter]:
    """Letters with what the runs died of."""

    def opened(keys: Keys, one: DeadLetter) -> DeadLetter:
        return replace(one, error=open_members(keys, one.error))

    return await _opened(desk, connection, tenant, letters, lambda one: _has(one.error), opened)


async def open_groups(
    desk: Desk, connection: Connection, tenant: TenantId, groups: Sequence[LetterGroup]
) -> list[LetterGroup]:
    """Groups of letters with their samples."""

    def opened(keys: Keys, one: LetterGroup) -> LetterGroup:
        return replace(one, sample=open_members(keys, one.sample))

    return await _opened(desk, connection, tenant, groups, lambda one: _has(one.sample), opened)


async def open_events(
    desk: Desk, connection: Connection, tenant: TenantId, events: Sequence[EventRow]
) -> list[EventRow]:
    """Events with the errors they tell of."""
    return await _opened(desk, connection, tenant, events, tells_sealed, open_event)


async def open_deliveries(
    desk: Desk, connection: Connection, tenant: TenantId, deliveries: Sequence[Delivery]
) -> list[Delivery]:
    """Deliveries with what was answered."""

    def opened(keys: Keys, one: Delivery) -> Delivery:
        return replace(one, response=open_members(keys, one.response))

    return await _opened(
        desk, connection, tenant, deliveries, lambda one: _has(one.response), opened
    )


def tells_sealed(event: EventRow) -> bool:
    """Whether an event tells of an error that is sealed."""
    return _has(event.body.get("error"))


def opened_or_closed(keys: Keys | None, event: EventRow) -> EventRow:
    """An event with as much of its error as can be told."""
    if not tells_sealed(event):
        return event
    try:
        return closed_event(event) if keys is None else open_event(keys, event)
    except Locked:
        return closed_event(event)


def open_event(keys: Keys, event: EventRow) -> EventRow:
    """An event with its error; like one that was never sealed it tells no stack."""
    error = {**open_members(keys, event.body["error"])}
    error.pop("stack", None)
    return replace(event, body={**event.body, "error": error})


def closed_event(event: EventRow) -> EventRow:
    """The same for somebody who has no key: the type of the error is all there is to tell."""
    return replace(event, body={**event.body, "error": {"type": event.body["error"].get("type")}})


def says(kept: Json | None, opened: Json | None, text: str | None) -> bool:
    """Whether a text is part of an error. Through what is not sealed the database has looked."""
    if text is None or not _has(kept):
        return True
    return text.lower() in json.dumps(opened or {}, ensure_ascii=False).lower()


async def _opened(
    desk: Desk,
    connection: Connection,
    tenant: TenantId,
    things: Sequence[T],
    is_closed: Callable[[T], bool],
    opened: Callable[[Keys, T], T],
) -> list[T]:
    """Nobody is asked for keys when nothing is sealed."""
    if not any(map(is_closed, things)):
        return list(things)
    keys = await opening_keys(desk, connection, tenant)
    return [opened(keys, one) if is_closed(one) else one for one in things]


def _has(said: object) -> bool:
    return isinstance(said, Mapping) and isinstance(said.get(SEALED), str)


def _is_sealed_note(note: Note) -> bool:
    marked = note.message is not None and note.message.startswith(MARK)
    return marked or is_sealed(note.checkpoint)


def _word(keys: Keys, said: Json) -> str:
    return b64encode(keys.seal(json.dumps(said).encode()) or b"").decode()


def _said(keys: Keys, word: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(keys.open(b64decode(word)) or b"{}")
    return said
