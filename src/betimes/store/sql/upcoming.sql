-- What is due soon: runs that exist already, and jobs whose next fires are still to be planned.

-- name: read_upcoming_runs :many
-- Runs of a tenant that are due in a span for the first time, in the order of their ids, which is that of dueness.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: id uuid, due_at timestamptz, fire_at timestamptz, job_id uuid, queue text, priority int2, state int2, handler text
SELECT id, due_at, fire_at, job_id, queue, priority, state, handler FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND id > :low::uuid AND id < :high::uuid AND state < 2
   AND (:queue::text IS NULL OR queue = :queue::text)
   AND (:job::uuid IS NULL OR job_id = :job::uuid)
 ORDER BY id LIMIT :most::integer;

-- name: read_upcoming_retries :many
-- Runs of a tenant that are tried again in a span. Their ids tell when they were due first, so each has a place among the
-- others: an id of the millisecond in which it is tried again.
-- Scatter: a tenant's parcels lie in every shard
-- Index: parcels_retry_idx
-- Returns: place uuid, id uuid, due_at timestamptz, fire_at timestamptz, job_id uuid, queue text, priority int2, state int2, handler text
SELECT waiting.place, runs.id, waiting.visible_at AS due_at, runs.fire_at, runs.job_id, runs.queue, runs.priority, runs.state,
       runs.handler
  FROM (SELECT parcels.shard, held.run_id, parcels.visible_at,
               (lpad(to_hex(floor(extract(epoch FROM parcels.visible_at) * 1000)::bigint), 12, '0')
                || substr(replace(held.run_id::text, '-', ''), 13))::uuid AS place
          FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
         WHERE parcels.tenant_id = :tenant::uuid AND parcels.lane = 1 AND parcels.worker_id IS NULL
           AND parcels.visible_at >= :since::timestamptz AND parcels.visible_at <= :until::timestamptz
           AND (:queue::text IS NULL OR parcels.queue = :queue::text)) AS waiting
  JOIN betimes.runs ON runs.shard = waiting.shard AND runs.id = waiting.run_id
 WHERE waiting.place > :low::uuid AND waiting.place < :high::uuid AND runs.state = 3
   AND (:job::uuid IS NULL OR runs.job_id = :job::uuid)
 ORDER BY waiting.place LIMIT :most::integer;

-- name: read_firing_jobs :many
-- Jobs of a tenant with a next fire before an instant, shard by shard.
-- Scatter: one range of an index per shard
-- Index: jobs_next_fire_idx
-- Returns: id uuid, next_fire_at timestamptz, queue text, priority int2, schedule text
SELECT firing.id, firing.next_fire_at, firing.queue, firing.priority, firing.schedule
  FROM unnest(:shards::smallint[]) AS place (shard) CROSS JOIN LATERAL (
    SELECT id, next_fire_at, queue, priority, schedule::text AS schedule FROM betimes.jobs
     WHERE jobs.shard = place.shard AND next_fire_at IS NOT NULL AND next_fire_at <= :until::timestamptz
       AND tenant_id = :tenant::uuid
       AND (:queue::text IS NULL OR queue = :queue::text)
       AND (:job::uuid IS NULL OR id = :job::uuid)
     ORDER BY next_fire_at, id LIMIT :most::integer) AS firing
 ORDER BY firing.next_fire_at, firing.id LIMIT :most::integer;

-- name: read_ended_runs :many
-- Which of these runs are over before they began, and why.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: id uuid, reason text
SELECT id, reason FROM betimes.runs
 WHERE tenant_id = :tenant::uuid AND id = ANY (:runs::uuid[]) AND state >= 4;

-- name: read_paces :many
-- How long runs of some queues have waited lately, how many have ended and since when, and how many wait now. Bounded
-- numbers of rows are looked at.
-- Scatter: a tenant's runs and parcels lie in every shard
-- Returns: queue text, lag interval, ended int8, since timestamptz, waiting int8
WITH lately AS (
    SELECT queue, due_at, first_started_at, finished_at FROM betimes.runs
     WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
     ORDER BY id DESC LIMIT :most::integer
), paces AS (
    SELECT queue, percentile_cont(0.5) WITHIN GROUP (ORDER BY greatest(first_started_at - due_at, interval '0')) AS lag,
           count(finished_at) AS ended, min(finished_at) AS since
      FROM lately WHERE queue = ANY (:names::text[]) AND first_started_at IS NOT NULL GROUP BY queue
), crowds AS (
    SELECT queue, sum(runs) AS waiting
      FROM (SELECT queue, cardinality(run_ids) AS runs FROM betimes.parcels
             WHERE tenant_id = :tenant::uuid AND worker_id IS NULL AND visible_at <= :now::timestamptz
             LIMIT :crowd::integer) AS few
     WHERE queue = ANY (:names::text[]) GROUP BY queue
)
SELECT asked.queue, paces.lag, coalesce(paces.ended, 0) AS ended, paces.since, coalesce(crowds.waiting, 0)::bigint AS waiting
  FROM unnest(:names::text[]) AS asked (queue) LEFT JOIN paces USING (queue) LEFT JOIN crowds USING (queue);

-- name: read_job_titles :many
-- What some jobs are called, and what they call.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_pkey
-- Returns: id uuid, job_group text, name text, handler text
SELECT jobs.id, jobs.job_group, jobs.name, jobs.handler
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.jobs ON jobs.shard = asked.shard AND jobs.id = asked.id;

-- name: read_brakes :maybe
-- Whether the whole cell is paused, and the state of a tenant.
-- Index: tenants_pkey
-- Returns: cluster_paused bool, tenant_state int2
SELECT EXISTS (SELECT FROM betimes.cluster WHERE one AND paused_at IS NOT NULL) AS cluster_paused, state AS tenant_state
  FROM betimes.tenants WHERE id = :tenant::uuid;

-- name: read_paused_queues :many
-- Which of these queues are paused, and until when; nothing means until somebody resumes them.
-- Index: queues_pkey
-- Returns: name text, paused_until timestamptz
SELECT name, paused_until FROM betimes.queues
 WHERE tenant_id = :tenant::uuid AND name = ANY (:names::text[]) AND paused_at IS NOT NULL;
