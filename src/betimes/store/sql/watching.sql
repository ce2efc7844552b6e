-- What alert rules look at: stored facts, found by index, a bounded number each.

-- name: tagged_jobs :many
-- Jobs that carry all of these tags, a bounded number.
-- Index: job_tags_pkey
-- Returns: job_id uuid
SELECT first.job_id FROM betimes.job_tags AS first
 WHERE first.tenant_id = :tenant::uuid AND first.key = (:keys::text[])[1] AND first.value = (:values::text[])[1]
   AND NOT EXISTS (
        SELECT FROM unnest(:keys::text[], :values::text[]) AS wanted (key, value)
         WHERE NOT EXISTS (
                SELECT FROM betimes.job_tags AS other
                 WHERE other.tenant_id = :tenant::uuid AND other.key = wanted.key AND other.value = wanted.value
                   AND other.job_id = first.job_id))
 ORDER BY first.job_id LIMIT :most::integer;

-- name: recently_dead :many
-- Jobs with a run that died since an instant.
-- Scatter: a tenant's letters lie in every shard
-- Index: dead_letters_tenant_idx
-- Returns: job_id uuid
SELECT DISTINCT few.job_id
  FROM (SELECT job_id FROM betimes.dead_letters
         WHERE tenant_id = :tenant::uuid AND state = 0 AND dead_at > :since::timestamptz AND job_id IS NOT NULL
         ORDER BY dead_at DESC LIMIT :most::integer) AS few;

-- name: failures_in_a_row :many
-- How many of the newest runs of jobs that came to an end by themselves are dead, of so many.
-- Scatter: the jobs of a rule lie in several shards
-- Index: runs_job_idx
-- Returns: job_id uuid, dead int8
SELECT asked.id AS job_id, newest.dead
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS asked (shard, id)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE few.state = 5) AS dead
         FROM (SELECT state FROM betimes.runs
                WHERE runs.shard = asked.shard AND runs.job_id = asked.id AND runs.id < :high::uuid AND runs.state IN (4, 5)
                ORDER BY runs.id DESC LIMIT :most::integer) AS few) AS newest;

-- name: late_runs :many
-- Since when the oldest run of each job is due that has not begun; what a worker holds has begun.
-- Scatter: the jobs of a rule lie in several shards
-- Index: runs_job_idx
-- Returns: job_id uuid, due_at timestamptz
SELECT asked.id AS job_id, min(waiting.due_at) AS due_at
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS asked (shard, id)
 CROSS JOIN LATERAL (
       SELECT few.id, few.due_at
         FROM (SELECT runs.id, runs.due_at, runs.state, runs.first_started_at FROM betimes.runs
                WHERE runs.shard = asked.shard AND runs.job_id = asked.id AND runs.id >= :low::uuid AND runs.id < :high::uuid
                ORDER BY runs.id DESC LIMIT :most::integer) AS few
        WHERE few.state < 3 AND few.first_started_at IS NULL AND few.due_at <= :due_before::timestamptz
          AND NOT EXISTS (SELECT FROM betimes.parcels
                           WHERE parcels.shard = asked.shard AND parcels.worker_id IS NOT NULL AND few.id = ANY (parcels.run_ids))
       ) AS waiting
 GROUP BY asked.id;

-- name: missed_fires :many
-- How many fires of jobs passed without a run, for these reasons, since an instant.
-- Scatter: a tenant's jobs lie in every shard
-- Index: decisions_tenant_idx
-- Returns: job_id uuid, fires int8
SELECT few.job_id, sum(few.fires)::bigint AS fires
  FROM (SELECT job_id, fires FROM betimes.decisions
         WHERE tenant_id = :tenant::uuid AND decided_at > :since::timestamptz AND code = ANY (:codes::text[])
           AND (:jobs::uuid[] IS NULL OR job_id = ANY (:jobs::uuid[]))
         ORDER BY decided_at DESC LIMIT :most::integer) AS few
 GROUP BY few.job_id;

-- name: last_successes :many
-- When each job was made and last succeeded, as far as its newest runs tell.
-- Scatter: the jobs of a rule lie in several shards
-- Index: runs_job_idx
-- Returns: job_id uuid, created_at timestamptz, success_at timestamptz
SELECT jobs.id AS job_id, jobs.created_at,
       (SELECT max(few.finished_at) FILTER (WHERE few.state = 4)
          FROM (SELECT runs.state, runs.finished_at FROM betimes.runs
                 WHERE runs.shard = asked.shard AND runs.job_id = asked.id AND runs.id < :high::uuid
                 ORDER BY runs.id DESC LIMIT :most::integer) AS few) AS success_at
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS asked (shard, id)
  JOIN betimes.jobs ON jobs.shard = asked.shard AND jobs.id = asked.id
 WHERE jobs.state = 0;

-- name: run_seconds :many
-- How long the newest successful runs of jobs took, the newest first.
-- Scatter: the jobs of a rule lie in several shards
-- Index: runs_job_idx
-- Returns: job_id uuid, seconds _float8
SELECT asked.id AS job_id,
       ARRAY(SELECT extract(epoch FROM runs.finished_at - runs.started_at)::double precision FROM betimes.runs
              WHERE runs.shard = asked.shard AND runs.job_id = asked.id AND runs.id < :high::uuid AND runs.state = 4
              ORDER BY runs.id DESC LIMIT :most::integer) AS seconds
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS asked (shard, id);

-- name: count_dead :one
-- How many runs of a tenant died since an instant, whatever became of their letters, counted no further than a bound.
-- Scatter: a tenant's letters lie in every shard
-- Index: dead_letters_tenant_idx
-- Returns: dead int8
SELECT count(*) AS dead
  FROM unnest('{0,1,2}'::smallint[]) AS known (state)
 CROSS JOIN LATERAL (
       SELECT dead_at FROM betimes.dead_letters
        WHERE tenant_id = :tenant::uuid AND dead_letters.state = known.state AND dead_at > :since::timestamptz
          AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
        ORDER BY dead_at DESC LIMIT :most::integer) AS few;

-- name: queue_backlog :one
-- Since when the oldest of what waits in a queue waits, and how much does, counted no further than a bound in each shard.
-- Scatter: a tenant's parcels lie in every shard
-- Index: parcels_ready_idx
-- Returns: waiting int8, oldest timestamptz
SELECT coalesce(sum(few.runs), 0)::bigint AS waiting, min(few.visible_at) AS oldest
  FROM betimes.shards CROSS JOIN LATERAL (
       SELECT cardinality(parcels.run_ids) AS runs, parcels.visible_at FROM betimes.parcels
        WHERE parcels.shard = shards.shard AND parcels.queue = :queue::text AND parcels.tenant_id = :tenant::uuid
          AND parcels.worker_id IS NULL AND parcels.held = 0 AND parcels.visible_at <= :now::timestamptz
        LIMIT :most::integer) AS few;

-- name: job_names :many
-- Jobs by their ids, and what they are called.
-- Scatter: the jobs of a rule lie in several shards
-- Returns: id uuid, name text, tenant_id uuid
SELECT jobs.id, jobs.name, jobs.tenant_id
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS asked (shard, id)
  JOIN betimes.jobs ON jobs.shard = asked.shard AND jobs.id = asked.id;
