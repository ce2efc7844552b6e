-- Processes that serve, and when they were last seen.

-- name: beat_node :one
-- Say that this node is alive; the answer tells it the database clock.
-- Index: nodes_pkey
-- Returns: now timestamptz
INSERT INTO betimes.nodes (id, name, version, tzdata, roles, started_at, heartbeat_at, skew_ms, draining)
VALUES (:id::uuid, :name::text, :version::text, :tzdata::text, :roles::text[],
        coalesce(:now::timestamptz, statement_timestamp()), coalesce(:now::timestamptz, statement_timestamp()),
        :skew_ms::double precision, :draining::boolean)
ON CONFLICT (id) DO UPDATE
   SET heartbeat_at = excluded.heartbeat_at, skew_ms = excluded.skew_ms, draining = excluded.draining,
       roles = excluded.roles
RETURNING heartbeat_at AS now;

-- name: read_nodes :many
-- Nodes seen within the given time, by role.
-- Returns: id uuid, name text, draining bool, skew_ms float8, heartbeat_at timestamptz
SELECT id, name, draining, skew_ms, heartbeat_at FROM betimes.nodes
 WHERE :role::text = ANY (roles)
   AND heartbeat_at > coalesce(:now::timestamptz, statement_timestamp()) - :within::interval
 ORDER BY id;

-- name: remove_node :exec
-- Forget a node that said goodbye.
-- Index: nodes_pkey
DELETE FROM betimes.nodes WHERE id = :id::uuid;

-- name: prune_nodes :many
-- Forget nodes that were not seen for long.
-- Returns: id uuid
DELETE FROM betimes.nodes
 WHERE heartbeat_at < coalesce(:now::timestamptz, statement_timestamp()) - :after::interval
RETURNING id;
