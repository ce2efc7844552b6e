-- What became of runs, counted: for people who look at a job, a queue or their bill.

-- name: job_stats :one
-- The runs of one job since an instant, by what became of them, and how long they waited and took.
-- Index: runs_job_idx
-- Returns: succeeded int8, dead int8, cancelled int8, skipped int8, expired int8, missed int8, open int8, run_seconds float8, lag float8[], run_time float8[]
SELECT count(*) FILTER (WHERE state = 4) AS succeeded, count(*) FILTER (WHERE state = 5) AS dead,
       count(*) FILTER (WHERE state = 6) AS cancelled, count(*) FILTER (WHERE state = 7) AS skipped,
       count(*) FILTER (WHERE state = 8) AS expired, count(*) FILTER (WHERE state = 9) AS missed,
       count(*) FILTER (WHERE state < 4) AS open,
       coalesce(sum(extract(epoch FROM finished_at - started_at)), 0)::float8 AS run_seconds,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
           ORDER BY greatest(extract(epoch FROM coalesce(first_started_at, started_at) - due_at), 0)::float8) AS lag,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
           ORDER BY extract(epoch FROM finished_at - started_at)::float8) AS run_time
  FROM betimes.runs
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND id < :high::uuid;

-- name: usage_rows :many
-- What a tenant's runs of a span have used, by day, queue or job, the largest first.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: label text, runs int8, succeeded int8, dead int8, run_seconds float8, bytes int8, lag float8[]
SELECT CASE :by::text WHEN 'day' THEN to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') WHEN 'queue' THEN queue
                      ELSE job_id::text END AS label,
       count(*) AS runs, count(*) FILTER (WHERE state = 4) AS succeeded, count(*) FILTER (WHERE state = 5) AS dead,
       coalesce(sum(extract(epoch FROM finished_at - started_at)), 0)::float8 AS run_seconds,
       coalesce(sum(octet_length(payload)), 0)::bigint + coalesce(sum(octet_length(result)), 0)::bigint AS bytes,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
           ORDER BY greatest(extract(epoch FROM coalesce(first_started_at, started_at) - due_at), 0)::float8) AS lag
  FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND id >= :low::uuid AND id < :high::uuid
 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most::integer;

-- name: queue_series :many
-- The runs of one queue that were due in a span, by steps of time.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: at timestamptz, due int8, succeeded int8, dead int8, run_seconds float8, lag float8
SELECT date_bin(:step::interval, due_at, :begin::timestamptz) AS at, count(*) AS due,
       count(*) FILTER (WHERE state = 4) AS succeeded, count(*) FILTER (WHERE state = 5) AS dead,
       coalesce(sum(extract(epoch FROM finished_at - started_at)), 0)::float8 AS run_seconds,
       percentile_cont(0.95) WITHIN GROUP (
           ORDER BY greatest(extract(epoch FROM coalesce(first_started_at, started_at) - due_at), 0)::float8) AS lag
  FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND queue = :queue::text AND id >= :low::uuid AND id < :high::uuid
   AND due_at >= :begin::timestamptz
 GROUP BY 1 ORDER BY 1 LIMIT :most::integer;

-- name: queue_flow :one
-- How much came into a queue in a span and how much was done in it, how late those began, and what the workers of the
-- tenant that serve it have room for. What was due before the span counts where it was done.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: arrived int8, finished int8, lag float8[], slots int8, busy int8
SELECT count(*) FILTER (WHERE due_at >= :since::timestamptz) AS arrived,
       count(*) FILTER (WHERE finished_at >= :since::timestamptz) AS finished,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
           ORDER BY greatest(extract(epoch FROM coalesce(first_started_at, started_at) - due_at), 0)::float8) AS lag,
       (SELECT coalesce(sum(workers.slots), 0) FROM betimes.workers
         WHERE workers.tenant_id = :tenant::uuid AND :queue::text = ANY (workers.queues)
           AND workers.heartbeat_at >= :alive::timestamptz) AS slots,
       (SELECT coalesce(sum(workers.busy), 0) FROM betimes.workers
         WHERE workers.tenant_id = :tenant::uuid AND :queue::text = ANY (workers.queues)
           AND workers.heartbeat_at >= :alive::timestamptz) AS busy
  FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND queue = :queue::text AND id >= :low::uuid AND id < :high::uuid;

-- name: queue_keys :many
-- The concurrency keys of a queue with most to do.
-- Scatter: a tenant's parcels lie in every shard
-- Returns: gate text, running int8, waiting int8
SELECT gate, count(*) FILTER (WHERE worker_id IS NOT NULL) AS running, count(*) FILTER (WHERE worker_id IS NULL) AS waiting
  FROM betimes.parcels
 WHERE tenant_id = :tenant::uuid AND queue = :queue::text AND gate IS NOT NULL
 GROUP BY gate ORDER BY count(*) DESC, gate LIMIT :most::integer;

-- name: queue_waiting :many
-- Every run that waits in a queue: in a parcel nobody holds, or planned and not yet published.
-- Scatter: a tenant's runs lie in every shard
-- Returns: id uuid, place text
SELECT runs.id,
       CASE WHEN runs.state = 3 THEN 'retry_wait'
            WHEN parcels.visible_at <= coalesce(:now::timestamptz, statement_timestamp()) THEN 'queued'
            ELSE 'scheduled' END AS place
  FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
  JOIN betimes.runs ON runs.shard = parcels.shard AND runs.id = held.run_id AND runs.state < 4
 WHERE parcels.tenant_id = :tenant::uuid AND parcels.queue = :queue::text AND parcels.worker_id IS NULL
 UNION
SELECT id, 'scheduled' FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND id >= :low::uuid AND queue = :queue::text AND state = 0
 LIMIT :most::integer;
