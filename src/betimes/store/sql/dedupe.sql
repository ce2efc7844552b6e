-- Business keys. The row of a key and what it guards commit together; whoever has the row decides.

-- name: take_keys :many
-- Take the keys that nobody has, each in the shard of its own digest; those that come back are ours.
-- Guard: the primary key; whoever takes the same key meanwhile waits here until we have ended
-- Returns: key text
INSERT INTO betimes.dedupe (shard, tenant_id, key, holder, created_at, expires_at, prune_at)
SELECT wanted.shard, :tenant::uuid, wanted.key, :nobody::uuid, :now::timestamptz, :now::timestamptz, :now::timestamptz
  FROM unnest(:shards::smallint[], :keys::text[]) AS wanted (shard, key)
 ORDER BY wanted.shard, wanted.key
ON CONFLICT (shard, tenant_id, key) DO NOTHING
RETURNING key;

-- name: lock_keys :many
-- The keys that somebody has, held until the transaction ends.
-- Scatter: every key lives in the shard of its own digest
-- Index: dedupe_pkey
-- Guard: the row locks, taken in one order
-- Returns: key text, holder uuid, created_at timestamptz, expires_at timestamptz
SELECT taken.key, taken.holder, taken.created_at, taken.expires_at
  FROM unnest(:shards::smallint[], :keys::text[]) AS wanted (shard, key)
  JOIN betimes.dedupe AS taken
    ON taken.shard = wanted.shard AND taken.tenant_id = :tenant::uuid AND taken.key = wanted.key
 ORDER BY taken.shard, taken.key
   FOR UPDATE OF taken;

-- name: read_holder :maybe
-- Who has a key.
-- Index: dedupe_pkey
-- Returns: holder uuid
SELECT holder FROM betimes.dedupe WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND key = :key::text;

-- name: hand_keys :exec
-- Write down who has which key, from when and until when. The caller holds the rows.
-- Scatter: every key lives in the shard of its own digest
-- Index: dedupe_pkey
-- Guard: the caller took or locked the rows in this transaction
UPDATE betimes.dedupe
   SET holder = given.holder, created_at = :now::timestamptz, expires_at = given.expires_at, prune_at = given.expires_at
  FROM unnest(:shards::smallint[], :keys::text[], :holders::uuid[], :expires::timestamptz[])
       AS given (shard, key, holder, expires_at)
 WHERE dedupe.shard = given.shard AND dedupe.tenant_id = :tenant::uuid AND dedupe.key = given.key;

-- name: read_holding_runs :many
-- What became of runs that hold keys.
-- Scatter: every run lives in the shard of its key
-- Index: runs_pkey
-- Returns: id uuid, state int2, attempt int2
SELECT runs.id, runs.state, runs.attempt
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS held (shard, id)
  JOIN betimes.runs ON runs.shard = held.shard AND runs.id = held.id;

-- name: read_holding_jobs :many
-- What became of jobs that hold keys.
-- Scatter: a named job lives in the shard of its name
-- Index: jobs_pkey
-- Returns: id uuid, state int2
SELECT jobs.id, jobs.state
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS held (shard, id)
  JOIN betimes.jobs ON jobs.shard = held.shard AND jobs.id = held.id;

-- name: lock_aged_keys :many
-- Keys of one shard whose window is over, a bounded number, locked.
-- Index: dedupe_prune_idx
-- Guard: SKIP LOCKED: whoever uses a key right now keeps it
-- Returns: tenant_id uuid, key text, holder uuid
WITH aged AS MATERIALIZED (
    SELECT tenant_id, key, holder FROM betimes.dedupe
     WHERE shard = :shard::smallint AND prune_at < coalesce(:now::timestamptz, statement_timestamp())
     ORDER BY prune_at LIMIT :most::integer
       FOR UPDATE SKIP LOCKED
)
SELECT * FROM aged;

-- name: find_active_holders :many
-- Which of these runs and jobs are not over.
-- Scatter: a named job lives in the shard of its name
-- Returns: id uuid
SELECT runs.id FROM unnest(:shards::smallint[], :ids::uuid[]) AS held (shard, id)
  JOIN betimes.runs ON runs.shard = held.shard AND runs.id = held.id WHERE runs.state < 4
UNION ALL
SELECT jobs.id FROM unnest(:shards::smallint[], :ids::uuid[]) AS held (shard, id)
  JOIN betimes.jobs ON jobs.shard = held.shard AND jobs.id = held.id WHERE jobs.state < 3;

-- name: postpone_keys :exec
-- Look at keys again later: their holders are still active.
-- Index: dedupe_pkey
UPDATE betimes.dedupe SET prune_at = :until::timestamptz
  FROM unnest(:tenants::uuid[], :keys::text[]) AS kept (tenant_id, key)
 WHERE dedupe.shard = :shard::smallint AND dedupe.tenant_id = kept.tenant_id AND dedupe.key = kept.key;

-- name: delete_keys :exec
-- Forget keys that the caller has locked.
-- Index: dedupe_pkey
DELETE FROM betimes.dedupe USING unnest(:tenants::uuid[], :keys::text[]) AS gone (tenant_id, key)
 WHERE dedupe.shard = :shard::smallint AND dedupe.tenant_id = gone.tenant_id AND dedupe.key = gone.key;
