"""For senders whose data lies in another database: what to enqueue, written beside it.

A row of `betimes_outbox` commits or vanishes with the transaction that wrote it; `betimes relay`
carries committed rows to the service, each with its id as idempotency key.

    with connection:                                     # one transaction
        ...
        app.tx(connection, outbox=True).enqueue(send_receipt, order_id)

The statements here are for the sender's database, which is why they are not in our store.
"""

__all__ = ["INSERT_COLUMNS", "SCHEMAS", "TABLE", "insert_statement"]

TABLE = "betimes_outbox"
INSERT_COLUMNS = ("id", "handler", "payload", "options")

SCHEMAS = {
    "postgresql": """\
CREATE TABLE IF NOT EXISTS betimes_outbox (
    seq        bigint GENERATED ALWAYS AS IDENTITY,
    id         text PRIMARY KEY,          -- the idempotency key of the request
    handler    text NOT NULL,
    payload    text,                      -- JSON
    options    text NOT NULL,             -- JSON: what POST /v1/runs takes beside both
    created_at timestamptz NOT NULL DEFAULT now(),
    retry_at   timestamptz,
    refused    text                       -- why the service will never take it
);
CREATE INDEX IF NOT EXISTS betimes_outbox_waiting_idx ON betimes_outbox (seq) WHERE refused IS NULL;
""",
    "sqlite": """\
CREATE TABLE IF NOT EXISTS betimes_outbox (
    seq        integer PRIMARY KEY AUTOINCREMENT,
    id         text NOT NULL UNIQUE,      -- the idempotency key of the request
    handler    text NOT NULL,
    payload    text,                      -- JSON
    options    text NOT NULL,             -- JSON: what POST /v1/runs takes beside both
    created_at text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    retry_at   text,
    refused    text                       -- why the service will never take it
);
""",
}


def insert_statement(marks: tuple[str, str, str, str]) -> str:
    """The statement that asks for a run; a second one with the same id is the first one."""
    return (
        f"INSERT INTO {TABLE} ({', '.join(INSERT_COLUMNS)}) VALUES ({', '.join(marks)})"  # noqa: S608 -- names and marks of ours
        " ON CONFLICT (id) DO NOTHING"
    )
