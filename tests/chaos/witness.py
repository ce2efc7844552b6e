"""Evidence from outside the engine: handlers that write down what they did, and what was committed.

A handler writes its line before it does anything else and again before it returns. What was
committed is noted by triggers in a schema of their own, in the transaction that did it.
"""

import asyncio
import json
import os
import time
from pathlib import Path

from betimes.domain.clock import Clock
from betimes.domain.ids import from_text
from betimes.worker import Context, Handlers

TRIGGERS = """
CREATE SCHEMA evidence;
CREATE TABLE evidence.shards (place bigserial, shard int, owner uuid, epoch bigint,
                              published_through timestamptz, at timestamptz);
CREATE TABLE evidence.leases (place bigserial, run uuid, fence int, visible_at timestamptz,
                              at timestamptz);
CREATE TABLE evidence.changes (place bigserial, run uuid, before int, after int, fence int,
                               at timestamptz);
CREATE FUNCTION evidence.note_shard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO evidence.shards (shard, owner, epoch, published_through, at)
    VALUES (NEW.shard, NEW.owner, NEW.epoch, NEW.published_through, clock_timestamp());
    RETURN NULL;
END $$;
CREATE FUNCTION evidence.note_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO evidence.leases (run, fence, visible_at, at)
    SELECT run, NEW.fence, NEW.visible_at, clock_timestamp() FROM unnest(NEW.run_ids) AS run;
    RETURN NULL;
END $$;
CREATE FUNCTION evidence.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO evidence.changes (run, before, after, fence, at)
    VALUES (NEW.id, OLD.state, NEW.state, NEW.fence, clock_timestamp());
    RETURN NULL;
END $$;
CREATE TRIGGER note_shard AFTER UPDATE ON betimes.shards
    FOR EACH ROW EXECUTE FUNCTION evidence.note_shard();
CREATE TRIGGER note_lease AFTER UPDATE ON betimes.parcels
    FOR EACH ROW WHEN (NEW.fence > OLD.fence) EXECUTE FUNCTION evidence.note_lease();
CREATE TRIGGER note_change AFTER UPDATE ON betimes.runs
    FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state)
    EXECUTE FUNCTION evidence.note_change();
"""


class FirstTryError(Exception):
    """What a flaky handler raises the first time."""


class Notebook:
    """Lines in a file that several processes append to; one write per line."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, what: str, context: Context) -> None:
        job = None if context.job_id is None else str(from_text("job", context.job_id))
        line = {
            "what": what,
            "run": str(from_text("run", context.run_id)),
            "job": job,
            "fire_at": None if context.fire_at is None else context.fire_at.timestamp(),
            "attempt": context.attempt,
            "fence": context.fence,
            "process": os.getpid(),
            "at": time.time(),
        }
        os.write(self._file, (json.dumps(line) + "\n").encode())


def witness_handlers(path: Path, _clock: Clock) -> Handlers:
    """`witness` works for as long as its payload says, `flaky` fails once, `poison` kills."""
    book = Notebook(path)

    async def witness(context: Context) -> None:
        book.note("start", context)
        await asyncio.sleep(float(context.payload or b"0"))
        book.note("end", context)

    async def flaky(context: Context) -> None:
        book.note("start", context)
        if context.attempt == 1:
            raise FirstTryError
        book.note("end", context)

    async def poison(context: Context) -> None:
        book.note("start", context)
        book.note("death", context)
        os._exit(9)

    handlers = Handlers()
    for function in (witness, flaky, poison):
        handlers.add(function.__name__, function)
    return handlers
