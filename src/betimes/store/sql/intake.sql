-- Runs that were asked for inside transactions of others, by the function betimes.enqueue_v1, and who may ask.

-- name: find_intake :many
-- Shards in which something waits to be made. Usually none, and then this reads next to nothing.
-- Scatter: one look for all shards
-- Index: intake_open_idx
-- Returns: shard int2
SELECT DISTINCT shard FROM betimes.intake WHERE refused IS NULL LIMIT :most::integer;

-- name: find_silent_producers :many
-- Whether somebody enqueues whose commits do not notify.
-- Returns: role text
SELECT role FROM betimes.producers WHERE NOT hints LIMIT 1;

-- name: lock_intake :many
-- What waits to be made in one shard, a bounded number, locked.
-- Index: intake_open_idx
-- Guard: SKIP LOCKED keeps coordinators apart; rows are deleted in the transaction that makes their runs
-- Returns: id uuid, tenant_id uuid, producer text, due_at timestamptz, priority int2, queue text, handler text, payload bytea, options text, dedupe_key text, dedupe_form text, dedupe_ms int8, known bool
WITH waiting AS MATERIALIZED (
    SELECT id, tenant_id, producer, due_at, priority, queue, handler, payload, options::text AS options,
           dedupe_key, dedupe_form, dedupe_ms
      FROM betimes.intake
     WHERE shard = :shard::smallint AND refused IS NULL
     ORDER BY id LIMIT :most::integer
       FOR UPDATE SKIP LOCKED
)
SELECT waiting.*, EXISTS (SELECT FROM betimes.tenants WHERE tenants.id = waiting.tenant_id) AS known FROM waiting;

-- name: delete_intake :exec
-- Forget what was made.
-- Index: intake_pkey
-- Guard: the caller holds the rows
DELETE FROM betimes.intake WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]);

-- name: refuse_intake :exec
-- Put a row aside from which no run can be made.
-- Index: intake_pkey
-- Guard: the caller holds the row
UPDATE betimes.intake SET refused = :why::text WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: read_intake :maybe
-- One run that was asked for and is not made yet.
-- Index: intake_pkey
-- Returns: id uuid, tenant_id uuid, producer text, due_at timestamptz, priority int2, queue text, handler text, payload bytea, options text, dedupe_key text, dedupe_form text, dedupe_ms int8, known bool
SELECT id, tenant_id, producer, due_at, priority, queue, handler, payload, options::text AS options,
       dedupe_key, dedupe_form, dedupe_ms, true AS known
  FROM betimes.intake WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: admit_producer :one
-- A database role may enqueue for a tenant from now on.
-- Returns: admitted bool
SELECT betimes.admit_producer(:role::text, :tenant::uuid, :hints::boolean) AS admitted;

-- name: dismiss_producer :one
-- A database role may not enqueue for a tenant any longer.
-- Returns: dismissed bool
SELECT betimes.dismiss_producer(:role::text, :tenant::uuid) AS dismissed;

-- name: list_producers :many
-- Who may enqueue inside transactions of their own.
-- Returns: role text, tenant text, hints bool
SELECT producers.role, tenants.slug AS tenant, producers.hints
  FROM betimes.producers JOIN betimes.tenants ON tenants.id = producers.tenant_id
 ORDER BY 1, 2;
