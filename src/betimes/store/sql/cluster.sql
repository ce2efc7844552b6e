-- The cell as a whole, for those who look after it.

-- name: read_cluster :one
-- What was fixed when this cell was made, and what time it is there.
-- Returns: id uuid, shards int2, paused_at timestamptz, paused_reason text, created_at timestamptz, now timestamptz
SELECT id, shards, paused_at, paused_reason, created_at, clock_timestamp() AS now FROM betimes.cluster WHERE one;

-- name: read_all_shards :many
-- Every shard with its owner, its epoch and how far it has come.
-- Scatter: the table has one row per shard
-- Returns: shard int2, owner uuid, epoch int8, lease_until timestamptz, published_through timestamptz, swept_through timestamptz
SELECT shard, owner, epoch, lease_until, published_through, swept_through FROM betimes.shards ORDER BY shard;

-- name: read_all_nodes :many
-- Every node that is known, the newest heartbeat first.
-- Returns: id uuid, name text, version text, tzdata text, roles _text, started_at timestamptz, heartbeat_at timestamptz, skew_ms float8, draining bool
SELECT id, name, version, tzdata, roles, started_at, heartbeat_at, skew_ms, draining
  FROM betimes.nodes ORDER BY heartbeat_at DESC LIMIT :most::integer;

-- name: pause_cluster :one
-- Put the brake on the whole cell, or let it go with no time; pausing again keeps the beginning.
-- Returns: paused_at timestamptz
UPDATE betimes.cluster
   SET paused_at = CASE WHEN :paused_at::timestamptz IS NULL THEN NULL ELSE coalesce(paused_at, :paused_at::timestamptz) END,
       paused_reason = :reason::text
 WHERE one
RETURNING paused_at;

-- name: drain_node :maybe
-- Ask a node to finish what it holds and to stop.
-- Index: nodes_pkey
-- Returns: id uuid
UPDATE betimes.nodes SET drain_at = coalesce(drain_at, :now::timestamptz) WHERE id = :id::uuid RETURNING id;

-- name: read_due_lag :one
-- How far publishing lies behind the clock in the shard that is last; nothing before anybody has published.
-- Scatter: the table has one row per shard
-- Returns: lag interval
SELECT coalesce(max(clock_timestamp() - published_through), interval '0') AS lag FROM betimes.shards WHERE epoch > 0;
