-- Why something did or did not run.

-- name: read_decision :maybe
-- The decision that covers a fire time of a job, if it did not become a run.
-- Index: decisions_pkey
-- Returns: fire_at timestamptz, until_at timestamptz, fires int8, decided_at timestamptz, code text, detail text
SELECT fire_at, until_at, fires, decided_at, code, detail::text AS detail FROM betimes.decisions
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND fire_at <= :at::timestamptz
   AND coalesce(until_at, fire_at) >= :at::timestamptz
 ORDER BY fire_at DESC LIMIT 1;

-- name: list_decisions :many
-- The latest fires of a job that did not become runs.
-- Index: decisions_pkey
-- Returns: fire_at timestamptz, until_at timestamptz, fires int8, decided_at timestamptz, code text, detail text
SELECT fire_at, until_at, fires, decided_at, code, detail::text AS detail FROM betimes.decisions
 WHERE shard = :shard::smallint AND job_id = :job::uuid ORDER BY fire_at DESC LIMIT :most::integer;

-- name: count_workers :one
-- How many remote workers of a tenant serve a queue and were seen since an instant; ours serve every queue.
-- Returns: remote int8, own int8
SELECT (SELECT count(*) FROM betimes.workers
         WHERE tenant_id = :tenant::uuid AND :queue::text = ANY (queues) AND heartbeat_at > :since::timestamptz
           AND NOT draining) AS remote,
       (SELECT count(*) FROM betimes.nodes
         WHERE 'worker' = ANY (roles) AND heartbeat_at > :since::timestamptz AND NOT draining) AS own;
