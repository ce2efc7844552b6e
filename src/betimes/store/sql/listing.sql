-- Lists that people page through, by whatever they filter.

-- name: list_jobs_where :many
-- Jobs of one tenant that fit a filter, in the order of their creation, page by page; no more than a number is looked at.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target,
       CASE WHEN :payloads::boolean THEN payload END AS payload, options::text AS options,
       state_reason::text AS state_reason, created_by
  FROM (SELECT * FROM betimes.jobs WHERE tenant_id = :tenant::uuid AND id > :after::uuid
         ORDER BY id LIMIT :scan::integer) AS jobs
 WHERE (:states::smallint[] IS NULL OR CASE
        -- Whose last fires are planned and not over is active, though it is stored as complete.
        WHEN state = 3 AND betimes.is_under_way(shard, id) THEN 0::smallint
        ELSE state END = ANY (:states::smallint[]))
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:group::text IS NULL OR job_group = :group::text)
   AND (:prefix::text IS NULL OR starts_with(name, :prefix::text))
   AND (:kinds::text[] IS NULL OR schedule ->> 'type' = ANY (:kinds::text[]))
   AND (:targets::text[] IS NULL OR coalesce(target ->> 'type', 'task') = ANY (:targets::text[]))
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:fire_after::timestamptz IS NULL
        OR coalesce(betimes.next_planned(shard, id, :soon::uuid), next_fire_at) > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL
        OR coalesce(betimes.next_planned(shard, id, :soon::uuid), next_fire_at) < :fire_before::timestamptz)
   AND (:text::text IS NULL OR position(lower(:text::text) IN lower(name)) > 0)
 ORDER BY id LIMIT :most::integer;

-- name: list_jobs_where_newest :many
-- The same from the newest on.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target,
       CASE WHEN :payloads::boolean THEN payload END AS payload, options::text AS options,
       state_reason::text AS state_reason, created_by
  FROM (SELECT * FROM betimes.jobs WHERE tenant_id = :tenant::uuid AND id < :after::uuid
         ORDER BY id DESC LIMIT :scan::integer) AS jobs
 WHERE (:states::smallint[] IS NULL OR CASE
        -- Whose last fires are planned and not over is active, though it is stored as complete.
        WHEN state = 3 AND betimes.is_under_way(shard, id) THEN 0::smallint
        ELSE state END = ANY (:states::smallint[]))
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:group::text IS NULL OR job_group = :group::text)
   AND (:prefix::text IS NULL OR starts_with(name, :prefix::text))
   AND (:kinds::text[] IS NULL OR schedule ->> 'type' = ANY (:kinds::text[]))
   AND (:targets::text[] IS NULL OR coalesce(target ->> 'type', 'task') = ANY (:targets::text[]))
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:fire_after::timestamptz IS NULL
        OR coalesce(betimes.next_planned(shard, id, :soon::uuid), next_fire_at) > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL
        OR coalesce(betimes.next_planned(shard, id, :soon::uuid), next_fire_at) < :fire_before::timestamptz)
   AND (:text::text IS NULL OR position(lower(:text::text) IN lower(name)) > 0)
 ORDER BY id DESC LIMIT :most::integer;

-- name: find_jobs_end :maybe
-- The last job that a page has looked at, if it has looked at so many.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: id uuid
SELECT id FROM betimes.jobs WHERE tenant_id = :tenant::uuid AND id > :after::uuid
 ORDER BY id OFFSET :scan::integer - 1 LIMIT 1;

-- name: find_jobs_end_newest :maybe
-- The same from the newest on.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: id uuid
SELECT id FROM betimes.jobs WHERE tenant_id = :tenant::uuid AND id < :after::uuid
 ORDER BY id DESC OFFSET :scan::integer - 1 LIMIT 1;

-- name: list_jobs_sorted :many
-- Jobs of one tenant that fit a filter, by name, next fire or last change, from a place on in either direction. No index
-- has these orders, because every creation would pay for it: what fits is sorted, and counted no further than a bound.
-- What may fit by its row alone is counted; by the runs planned of it, which decide what it shows, only those are judged.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: fitting int8, key text, id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
WITH wide AS MATERIALIZED (
    SELECT shard, id, name, job_group, next_fire_at, updated_at, state
      FROM betimes.jobs
     WHERE tenant_id = :tenant::uuid
       AND (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]) OR (state = 3 AND 0 = ANY (:states::smallint[])))
       AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
       AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
       AND (:group::text IS NULL OR job_group = :group::text)
       AND (:prefix::text IS NULL OR starts_with(name, :prefix::text))
       AND (:kinds::text[] IS NULL OR schedule ->> 'type' = ANY (:kinds::text[]))
       AND (:targets::text[] IS NULL OR coalesce(target ->> 'type', 'task') = ANY (:targets::text[]))
       AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
       AND (:text::text IS NULL OR position(lower(:text::text) IN lower(name)) > 0)
     LIMIT :bound::integer + 1
), shown AS MATERIALIZED (
    SELECT shard, id, name, job_group, updated_at,
           CASE WHEN state = 3 AND :states::smallint[] IS NOT NULL AND betimes.is_under_way(shard, id) THEN 0::smallint
                ELSE state END AS state,
           CASE WHEN :by::text = 'next_fire_at' OR :fire_after::timestamptz IS NOT NULL OR :fire_before::timestamptz IS NOT NULL
                THEN coalesce(betimes.next_planned(shard, id, :soon::uuid), next_fire_at) END AS next_fire_at
      FROM wide
), few AS (
    SELECT shard, id,
           -- What has no such thing comes last.
           (CASE :by::text WHEN 'name' THEN coalesce('0' || name || chr(1) || job_group, '1')
                           WHEN 'next_fire_at' THEN coalesce('0' || lpad((extract(epoch FROM next_fire_at) * 1000000)::bigint::text, 20, '0'), '1')
                           ELSE '0' || lpad((extract(epoch FROM updated_at) * 1000000)::bigint::text, 20, '0') END) COLLATE "C" AS key
      FROM shown
     WHERE (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
       AND (:fire_after::timestamptz IS NULL OR next_fire_at > :fire_after::timestamptz)
       AND (:fire_before::timestamptz IS NULL OR next_fire_at < :fire_before::timestamptz)
), page AS (
    SELECT shard, id, key FROM few
     WHERE CASE WHEN :at_key::text IS NULL THEN true
                WHEN :up::boolean THEN (key, id) >= (:at_key::text COLLATE "C", :at_id::uuid)
                ELSE (key, id) < (:at_key::text COLLATE "C", :at_id::uuid) END
     ORDER BY CASE WHEN :up::boolean THEN key END, CASE WHEN :up::boolean THEN id END, key DESC, id DESC
     LIMIT :most::integer
)
SELECT counted.fitting, page.key, jobs.id, tenant_id, job_group, name, next_fire_at, paused_until, created_at,
       updated_at, revision, fires, state, priority, after_completion, queue, handler, tzdata, schedule::text AS schedule,
       target::text AS target, CASE WHEN :payloads::boolean THEN payload END AS payload, options::text AS options,
       state_reason::text AS state_reason, created_by
  FROM (SELECT count(*) AS fitting FROM wide) AS counted
  -- One row without a job when none is shown: how many were counted is to be known then, too.
  LEFT JOIN (page JOIN betimes.jobs ON jobs.shard = page.shard AND jobs.id = page.id) ON true
 ORDER BY CASE WHEN :up::boolean THEN page.key END, CASE WHEN :up::boolean THEN page.id END, page.key DESC, page.id DESC;

-- name: list_runs_where :many
-- Runs of one tenant that fit a filter and are due in a span, latest first, page by page; no more than a number is looked at.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT * FROM betimes.runs WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
         ORDER BY id DESC LIMIT :scan::integer) AS runs
 WHERE (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:worker::uuid IS NULL OR worker_id = :worker::uuid)
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = runs.shard AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY id DESC LIMIT :most::integer;

-- name: list_runs_of_job :many
-- Runs of one job that fit a filter and are due in a span, latest first, page by page; no more than a number is looked at.
-- Index: runs_job_idx
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT * FROM betimes.runs WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid AND id >= :low::uuid
           AND tenant_id = :tenant::uuid ORDER BY id DESC LIMIT :scan::integer) AS runs
 WHERE (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:worker::uuid IS NULL OR worker_id = :worker::uuid)
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY id DESC LIMIT :most::integer;

-- name: list_runs_where_earliest :many
-- The same from the earliest on.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT * FROM betimes.runs WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
         ORDER BY id LIMIT :scan::integer) AS runs
 WHERE (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:worker::uuid IS NULL OR worker_id = :worker::uuid)
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = runs.shard AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY id LIMIT :most::integer;

-- name: list_runs_of_job_earliest :many
-- The same from the earliest on.
-- Index: runs_job_idx
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT * FROM betimes.runs WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid AND id >= :low::uuid
           AND tenant_id = :tenant::uuid ORDER BY id LIMIT :scan::integer) AS runs
 WHERE (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:worker::uuid IS NULL OR worker_id = :worker::uuid)
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY id LIMIT :most::integer;

-- name: find_runs_end :one
-- The last run that a page has looked at on its way from one end of a span to the other, if it has looked at so many; of all,
-- or of one job.
-- Scatter: a tenant's runs lie in every shard
-- Returns: id uuid
SELECT CASE WHEN :job::uuid IS NULL AND :up::boolean THEN (
                SELECT id FROM betimes.runs WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
                 ORDER BY id OFFSET :scan::integer - 1 LIMIT 1)
            WHEN :job::uuid IS NULL THEN (
                SELECT id FROM betimes.runs WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
                 ORDER BY id DESC OFFSET :scan::integer - 1 LIMIT 1)
            WHEN :up::boolean THEN (
                SELECT id FROM betimes.runs
                 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid AND id >= :low::uuid
                 ORDER BY id OFFSET :scan::integer - 1 LIMIT 1)
            ELSE (
                SELECT id FROM betimes.runs
                 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid AND id >= :low::uuid
                 ORDER BY id DESC OFFSET :scan::integer - 1 LIMIT 1) END AS id;

-- name: list_running :many
-- Runs of one tenant that workers have, with the filters of the lists above, latest first; found by the parcels that are
-- leased, however many runs have ended since. No more than a number is looked at.
-- Scatter: a tenant's runs lie in every shard
-- Index: parcels_in_flight_idx, runs_pkey
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT runs.id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT parcels.shard, held.run_id
          FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
         WHERE parcels.tenant_id = :tenant::uuid AND parcels.worker_id IS NOT NULL
           AND held.run_id < :high::uuid AND held.run_id >= :low::uuid
           AND (:worker::uuid IS NULL OR parcels.worker_id = :worker::uuid)
         ORDER BY held.run_id DESC LIMIT :scan::integer) AS leased
       -- One by one, in their order, so that a page ends when it is full.
       CROSS JOIN LATERAL (SELECT * FROM betimes.runs
                            WHERE runs.shard = leased.shard AND runs.id = leased.run_id LIMIT 1) AS runs
 WHERE state < 4
   AND (:job::uuid IS NULL OR job_id = :job::uuid)
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = runs.shard AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY leased.run_id DESC LIMIT :most::integer;

-- name: list_running_earliest :many
-- The same from the earliest on.
-- Scatter: a tenant's runs lie in every shard
-- Index: parcels_in_flight_idx, runs_pkey
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, workflow_run_id uuid, node text
SELECT runs.id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, NULL::bytea AS payload,
       options::text AS options, NULL::bytea AS result, error::text AS error, fair, gate, when_full, rate_key,
       workflow_run_id, node
  FROM (SELECT parcels.shard, held.run_id
          FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
         WHERE parcels.tenant_id = :tenant::uuid AND parcels.worker_id IS NOT NULL
           AND held.run_id < :high::uuid AND held.run_id >= :low::uuid
           AND (:worker::uuid IS NULL OR parcels.worker_id = :worker::uuid)
         ORDER BY held.run_id LIMIT :scan::integer) AS leased
       -- One by one, in their order, so that a page ends when it is full.
       CROSS JOIN LATERAL (SELECT * FROM betimes.runs
                            WHERE runs.shard = leased.shard AND runs.id = leased.run_id LIMIT 1) AS runs
 WHERE state < 4
   AND (:job::uuid IS NULL OR job_id = :job::uuid)
   AND (:workflow_run::uuid IS NULL OR workflow_run_id = :workflow_run::uuid)
   AND (:queues::text[] IS NULL OR queue = ANY (:queues::text[]))
   AND (:handlers::text[] IS NULL OR handler = ANY (:handlers::text[]))
   AND (:triggers::smallint[] IS NULL OR trigger = ANY (:triggers::smallint[]))
   AND (:tags::text IS NULL OR options -> 'tags' @> :tags::text::jsonb)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:fire_after::timestamptz IS NULL OR fire_at > :fire_after::timestamptz)
   AND (:fire_before::timestamptz IS NULL OR fire_at < :fire_before::timestamptz)
   AND (:finished_after::timestamptz IS NULL OR finished_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR finished_at < :finished_before::timestamptz)
   AND (:lag::interval IS NULL OR coalesce(first_started_at, started_at) - due_at >= :lag::interval)
   AND (:fingerprint::text IS NULL OR EXISTS (
        SELECT FROM betimes.dead_letters
         WHERE dead_letters.shard = runs.shard AND dead_letters.run_id = runs.id
           AND dead_letters.fingerprint = :fingerprint::text))
 ORDER BY leased.run_id LIMIT :most::integer;

-- name: find_running_end :one
-- The last leased run that a page has looked at on its way from one end of a span to the other, if it has looked at so many.
-- Scatter: a tenant's parcels lie in every shard
-- Index: parcels_in_flight_idx
-- Returns: id uuid
WITH leased AS MATERIALIZED (
    SELECT held.run_id AS id FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
     WHERE parcels.tenant_id = :tenant::uuid AND parcels.worker_id IS NOT NULL
       AND held.run_id < :high::uuid AND held.run_id >= :low::uuid
       AND (:worker::uuid IS NULL OR parcels.worker_id = :worker::uuid)
)
SELECT CASE WHEN :up::boolean THEN (SELECT id FROM leased ORDER BY id OFFSET :scan::integer - 1 LIMIT 1)
            ELSE (SELECT id FROM leased ORDER BY id DESC OFFSET :scan::integer - 1 LIMIT 1) END AS id;

-- name: read_last_runs :many
-- The latest run of each of some jobs that was due by an instant, whatever became of it.
-- Scatter: a page of jobs lies in many shards
-- Index: runs_job_idx
-- Returns: id uuid, job_id uuid, state int2, finished_at timestamptz
SELECT latest.id, latest.job_id, latest.state, latest.finished_at
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS wanted (shard, job) CROSS JOIN LATERAL (
    SELECT id, job_id, state, finished_at FROM betimes.runs
     WHERE runs.shard = wanted.shard AND runs.job_id = wanted.job AND runs.id < :before::uuid
     ORDER BY id DESC LIMIT 1) AS latest;

-- name: read_holdings :many
-- The parcels that hold some of these runs, with what the public states depend on.
-- Scatter: a page of runs lies in many shards
-- Returns: run_id uuid, parcel_id uuid, worker_id uuid, fence int4, lease_until timestamptz, visible_at timestamptz, deliveries int4, leased_at timestamptz
SELECT held.run_id, parcels.id AS parcel_id, parcels.worker_id, parcels.fence, parcels.lease_until, parcels.visible_at,
       parcels.deliveries, parcels.leased_at
  FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
 WHERE parcels.tenant_id = :tenant::uuid AND parcels.shard = ANY (:shards::smallint[]) AND parcels.run_ids && :runs::uuid[]
   AND held.run_id = ANY (:runs::uuid[]);

-- name: count_jobs :one
-- How many jobs a tenant has, counted no further than a bound.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: jobs int8
SELECT count(*) AS jobs FROM (SELECT FROM betimes.jobs WHERE tenant_id = :tenant::uuid LIMIT :most::bigint) AS few;

-- name: count_work :one
-- How many runs of a tenant wait, and how many are under way.
-- Scatter: a tenant's parcels lie in every shard
-- Returns: waiting int8, leased int8
SELECT coalesce(sum(cardinality(run_ids)) FILTER (WHERE worker_id IS NULL), 0)::bigint AS waiting,
       coalesce(sum(cardinality(run_ids)) FILTER (WHERE worker_id IS NOT NULL), 0)::bigint AS leased
  FROM betimes.parcels WHERE tenant_id = :tenant::uuid;
