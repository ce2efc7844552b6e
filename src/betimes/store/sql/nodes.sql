-- The processes of the service, as they report themselves.

-- name: beat_node :one
-- Say that a node is alive, and learn the database clock by the way.
-- Index: nodes_pkey
-- Returns: now timestamptz
INSERT INTO betimes.nodes (
    id, name, version, tzdata, roles, started_at, heartbeat_at, skew_ms, draining
)
VALUES (
    :id, :name, :version, :tzdata, :roles,
    coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()), :skew_ms, :draining
)
ON CONFLICT (id) DO UPDATE
   SET heartbeat_at = excluded.heartbeat_at, skew_ms = excluded.skew_ms,
       draining = excluded.draining
RETURNING coalesce(:now::timestamptz, clock_timestamp()) AS now;

-- name: list_nodes :many
-- Every node heard of since an instant, oldest first.
-- Returns: id uuid, name text, version text, roles text[], started_at timestamptz, heartbeat_at timestamptz, skew_ms float8, draining bool, drain_at timestamptz, capacity int4
SELECT id, name, version, roles, started_at, heartbeat_at, skew_ms, draining, drain_at, capacity
  FROM betimes.nodes
 WHERE heartbeat_at > :since
 ORDER BY started_at, id
 LIMIT :rows_max;

-- name: note_capacity :exec
-- Say how many shards a coordinator can serve, as it has measured.
-- Index: nodes_pkey
UPDATE betimes.nodes SET capacity = :capacity::integer WHERE id = :id;

-- name: leave_node :exec
-- Forget a node that says goodbye.
-- Index: nodes_pkey
DELETE FROM betimes.nodes WHERE id = :id;

-- name: prune_nodes :many
-- Forget nodes that were not seen for long.
-- Returns: id uuid
DELETE FROM betimes.nodes
 WHERE heartbeat_at < coalesce(:now::timestamptz, statement_timestamp()) - :after::interval
RETURNING id;
