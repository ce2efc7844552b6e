-- Runs that had to start by an instant and did not, or to end and did not.

-- name: find_shards_to_expire :many
-- Which of these shards have runs that had to start since somebody looked last.
-- Scatter: a probe of an index per shard and partition
-- Index: runs_start_by_idx
-- Returns: shard int2
SELECT shards.shard FROM betimes.shards
 WHERE shards.shard = ANY (:shards::smallint[]) AND EXISTS (
    SELECT FROM betimes.runs
     WHERE runs.shard = shards.shard AND runs.start_by IS NOT NULL
       AND runs.start_by > coalesce(shards.expired_through, '-infinity') AND runs.start_by <= coalesce(:now::timestamptz, statement_timestamp()));

-- name: read_expired_through :one
-- Up to where a shard was looked through. The caller owns the shard.
-- Index: shards_pkey
-- Returns: through timestamptz
SELECT coalesce(expired_through, '-infinity') AS through FROM betimes.shards WHERE shard = :shard::smallint;

-- name: find_overdue :many
-- Runs that wait for their first attempt and had to start within a span, or that were asked to end by then, in the
-- order of their deadlines.
-- Index: runs_start_by_idx
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, trigger int2, start_by timestamptz, is_cancelled bool, reason text
SELECT id, tenant_id, job_id, revision, trigger, start_by, cancel_at IS NOT NULL AS is_cancelled, reason FROM betimes.runs
 WHERE shard = :shard::smallint AND start_by >= :after::timestamptz AND start_by <= :now::timestamptz AND start_by IS NOT NULL
   AND state < 4 AND (cancel_at IS NOT NULL OR (state < 2 AND attempt = 0))
 ORDER BY start_by LIMIT :most::integer;

-- name: move_expired :maybe
-- Say up to where a shard was looked through for runs that had to start.
-- Index: shards_pkey
-- Guard: owner and epoch
-- Returns: expired_through timestamptz
UPDATE betimes.shards SET expired_through = greatest(expired_through, :through::timestamptz)
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
RETURNING expired_through;
