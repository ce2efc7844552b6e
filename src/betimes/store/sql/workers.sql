-- Workers, and when they were last seen.

-- name: report_worker :exec
-- Say that a worker is alive, what it serves and how busy it is.
-- Index: workers_pkey
INSERT INTO betimes.workers (id, node_id, name, version, queues, handlers, slots, busy, started_at, heartbeat_at, skew_ms, draining)
VALUES (:id::uuid, :node::uuid, :name::text, :version::text, :queues::text[], :handlers::text[], :slots::integer,
        :busy::integer, coalesce(:now::timestamptz, statement_timestamp()),
        coalesce(:now::timestamptz, statement_timestamp()), :skew_ms::double precision, :draining::boolean)
ON CONFLICT (id) DO UPDATE
   SET heartbeat_at = excluded.heartbeat_at, busy = excluded.busy, slots = excluded.slots,
       skew_ms = excluded.skew_ms, draining = excluded.draining;

-- name: leave_worker :exec
-- Forget a worker that says goodbye.
DELETE FROM betimes.workers WHERE id = :id::uuid;

-- name: read_known_names :one
-- Which handlers and queues workers have named that were heard of since an instant, and which queues have settings.
-- Returns: handlers _text, queues _text
SELECT ARRAY(SELECT DISTINCT said.name FROM betimes.workers CROSS JOIN LATERAL unnest(handlers) AS said (name)
              WHERE heartbeat_at > :since::timestamptz AND (tenant_id IS NULL OR tenant_id = :tenant::uuid)
              LIMIT :most::integer) AS handlers,
       ARRAY(SELECT said.name FROM betimes.workers CROSS JOIN LATERAL unnest(queues) AS said (name)
              WHERE heartbeat_at > :since::timestamptz AND (tenant_id IS NULL OR tenant_id = :tenant::uuid)
              UNION
             SELECT kept.name FROM betimes.queues AS kept WHERE kept.tenant_id = :tenant::uuid
              LIMIT :most::integer) AS queues;
