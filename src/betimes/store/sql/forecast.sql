-- What lies ahead of many jobs at once: specifications with counts, durations of the past, room in workers.

-- name: measure_firing_jobs :one
-- How many jobs of a tenant there are, up to a bound, and about how many there are of all tenants.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: own int8, every float8
SELECT (SELECT count(*) FROM (SELECT FROM betimes.jobs WHERE tenant_id = :tenant::uuid LIMIT :bound::integer) AS counted) AS own,
       (SELECT reltuples::float8 FROM pg_class WHERE oid = 'betimes.jobs'::regclass) AS every;

-- name: read_firing_specs :many
-- Specifications of jobs that fire before an instant, with the number of jobs that share each and some of their ids.
-- Scatter: a forecast looks at every shard
-- Returns: label text, schedule text, jobs int8, ids _uuid
SELECT CASE :by::text WHEN 'queue' THEN queue WHEN 'handler' THEN coalesce(handler, '') WHEN 'tenant' THEN tenant_id::text
                      ELSE '' END AS label,
       schedule::text AS schedule, count(*) AS jobs, (array_agg(id))[1:32] AS ids
  FROM betimes.jobs
 WHERE next_fire_at < :until::timestamptz AND (:tenant::uuid IS NULL OR tenant_id = :tenant::uuid)
 GROUP BY 1, 2;

-- name: sample_firing_specs :many
-- The same from some of the pages of the table.
-- Scatter: a forecast looks at every shard
-- Returns: label text, schedule text, jobs int8, ids _uuid
SELECT CASE :by::text WHEN 'queue' THEN queue WHEN 'handler' THEN coalesce(handler, '') WHEN 'tenant' THEN tenant_id::text
                      ELSE '' END AS label,
       schedule::text AS schedule, count(*) AS jobs, (array_agg(id))[1:32] AS ids
  FROM betimes.jobs TABLESAMPLE SYSTEM (:percent)
 WHERE next_fire_at < :until::timestamptz AND (:tenant::uuid IS NULL OR tenant_id = :tenant::uuid)
 GROUP BY 1, 2;

-- name: read_durations :many
-- How long runs that ended lately took, in seconds, from the last few of every shard.
-- Scatter: the last few runs of every shard
-- Returns: label text, seconds float8
SELECT CASE :by::text WHEN 'queue' THEN queue WHEN 'handler' THEN coalesce(handler, '') WHEN 'tenant' THEN tenant_id::text
                      ELSE '' END AS label,
       avg(extract(epoch FROM finished_at - started_at))::float8 AS seconds
  FROM unnest(:shards::smallint[]) AS place (shard) CROSS JOIN LATERAL (
    SELECT queue, handler, tenant_id, started_at, finished_at FROM betimes.runs
     WHERE runs.shard = place.shard AND runs.id >= :low::uuid AND runs.id < :high::uuid
       AND (:tenant::uuid IS NULL OR tenant_id = :tenant::uuid)
       AND finished_at IS NOT NULL AND started_at IS NOT NULL
     ORDER BY runs.id DESC LIMIT :most::integer) AS ended
 GROUP BY 1;

-- name: read_capacity :many
-- Places of workers that were seen lately and stay, by the queues they serve.
-- Returns: queues _text, slots int8
SELECT queues, sum(slots)::bigint AS slots FROM betimes.workers
 WHERE heartbeat_at > :since::timestamptz AND NOT draining
   AND (tenant_id IS NULL OR :tenant::uuid IS NULL OR tenant_id = :tenant::uuid)
 GROUP BY queues;
