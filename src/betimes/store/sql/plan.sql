-- From definitions to runs: the planner's statements, all under the shard's epoch.

-- name: look_for_plans :many
-- What there is to plan or to settle in some shards: jobs on time, jobs that are behind, gaps. Shards with nothing are left out.
-- Scatter: three probes of an index per shard
-- Returns: shard int2, due bool, late bool, gap bool
SELECT look.* FROM (
    SELECT wanted.shard,
           EXISTS (SELECT FROM betimes.jobs
                    WHERE jobs.shard = wanted.shard AND jobs.next_fire_at >= :edge::timestamptz
                      AND jobs.next_fire_at < wanted.before) AS due,
           EXISTS (SELECT FROM betimes.jobs
                    WHERE jobs.shard = wanted.shard AND jobs.next_fire_at < :edge::timestamptz) AS late,
           EXISTS (SELECT FROM betimes.gaps WHERE gaps.shard = wanted.shard) AS gap
      FROM unnest(:shards::smallint[], :limits::timestamptz[]) AS wanted (shard, before)) AS look
 WHERE look.due OR look.late OR look.gap;

-- name: read_due_jobs :many
-- Jobs of one shard in the order of their next fire, page by page.
-- Index: jobs_next_fire_idx
-- Returns: id uuid, tenant_id uuid, revision int4, next_fire_at timestamptz, fires int8, queue text, priority int2, handler text, schedule text, options text, since timestamptz
SELECT id, tenant_id, revision, next_fire_at, fires, queue, priority, handler,
       schedule::text AS schedule, options::text AS options, updated_at AS since
  FROM betimes.jobs
 WHERE shard = :shard::smallint AND next_fire_at IS NOT NULL AND next_fire_at < :before::timestamptz
   AND (next_fire_at, id) > (:after_at::timestamptz, :after_id::uuid)
 ORDER BY next_fire_at, id
 LIMIT :most::integer;

-- name: advance_jobs :many
-- Move jobs to their next fire, or to their end; only those nobody edited or advanced meanwhile.
-- Index: jobs_next_fire_idx
-- Guard: revision and the fire we computed from
-- Returns: id uuid
UPDATE betimes.jobs
   SET next_fire_at = step.next_fire_at, fires = jobs.fires + step.fired, tzdata = :tzdata::text,
       state = CASE WHEN step.completed THEN 3 ELSE jobs.state END
  FROM unnest(:ids::uuid[], :revisions::integer[], :expected::timestamptz[],
              :next_fires::timestamptz[], :fired::bigint[], :completed::boolean[])
       AS step (id, revision, expected, next_fire_at, fired, completed)
 WHERE jobs.shard = :shard::smallint AND jobs.id = step.id AND jobs.revision = step.revision
   AND jobs.next_fire_at = step.expected AND jobs.state = 0
RETURNING jobs.id;

-- name: insert_planned_runs :many
-- Insert occurrences of jobs; one that exists already stays as it is.
-- Guard: the primary key is a function of (job, fire time)
-- Returns: id uuid
INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, fire_at, revision, state, trigger, priority, queue, handler,
                          fair, when_full, gate, rate_key, overlap, start_by)
SELECT :shard::smallint, planned.id, planned.tenant_id, planned.job_id, planned.due_at, planned.fire_at,
       planned.revision, planned.state, :trigger::smallint, planned.priority, planned.queue, planned.handler,
       planned.fair, planned.when_full, planned.gate, planned.rate_key, planned.overlap, planned.start_by
  FROM unnest(:ids::uuid[], :tenants::uuid[], :jobs::uuid[], :dues::timestamptz[], :fires::timestamptz[],
              :revisions::integer[], :states::smallint[], :priorities::smallint[], :queues::text[], :handlers::text[],
              :fairs::smallint[], :whens::smallint[], :gates::text[], :rate_keys::text[], :overlaps::smallint[],
              :starts::timestamptz[])
       AS planned (id, tenant_id, job_id, due_at, fire_at, revision, state, priority, queue, handler, fair, when_full, gate,
                   rate_key, overlap, start_by)
ON CONFLICT (shard, id) DO NOTHING
RETURNING id;

-- name: insert_far_runs :exec
-- Insert occurrences that the publisher will put into parcels; one that exists already stays as it is.
-- Each job is sent once, its runs are a slice of the lists; a missing fire time is the due time, a missing deadline none.
-- Guard: the primary key is a function of (job, fire time)
INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, fire_at, revision, state, trigger, priority, queue, handler,
                          fair, when_full, gate, rate_key, overlap, start_by)
SELECT :shard::smallint, run.id, job.tenant_id, job.id, run.due_at, coalesce(run.fire_at, run.due_at),
       job.revision, 0, :trigger::smallint, job.priority, job.queue, job.handler, job.fair, job.when_full, job.gate,
       job.rate_key, job.overlap, run.start_by
  FROM unnest(:jobs::uuid[], :tenants::uuid[], :revisions::integer[], :priorities::smallint[], :queues::text[],
              :handlers::text[], :fairs::smallint[], :whens::smallint[], :gates::text[], :rate_keys::text[],
              :overlaps::smallint[], :firsts::integer[], :lasts::integer[])
       AS job (id, tenant_id, revision, priority, queue, handler, fair, when_full, gate, rate_key, overlap, first, last)
 CROSS JOIN LATERAL unnest((:ids::uuid[])[job.first:job.last], (:dues::timestamptz[])[job.first:job.last],
                           (:fires::timestamptz[])[job.first:job.last],
                           (:starts::timestamptz[])[job.first:job.last]) AS run (id, due_at, fire_at, start_by)
 WHERE true  -- so that no reader takes ON CONFLICT for the condition of the join
ON CONFLICT (shard, id) DO NOTHING;

-- name: insert_decisions :exec
-- Record fires that did not become runs; the first reason stands. What an outage has cost is told, too.
-- Guard: the first reason for a fire stands
WITH kept AS (
    INSERT INTO betimes.decisions (shard, job_id, fire_at, until_at, fires, tenant_id, decided_at, revision, code, detail)
    SELECT dropped.shard, dropped.job_id, dropped.fire_at, dropped.until_at, dropped.fires, dropped.tenant_id,
           coalesce(:now::timestamptz, statement_timestamp()), dropped.revision, dropped.code, dropped.detail::jsonb
      FROM unnest(:shards::smallint[], :jobs::uuid[], :fires_at::timestamptz[], :until::timestamptz[], :counts::bigint[],
                  :tenants::uuid[], :revisions::integer[], :codes::text[], :details::text[])
           AS dropped (shard, job_id, fire_at, until_at, fires, tenant_id, revision, code, detail)
    ON CONFLICT DO NOTHING
    RETURNING shard, job_id, tenant_id, fire_at, until_at, fires, code
)
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT kept.shard, betimes.new_id(kept.shard), kept.tenant_id, 'run.missed', betimes.id_text('job', kept.job_id),
       jsonb_build_object('job_id', betimes.id_text('job', kept.job_id), 'state', 'missed', 'scheduled_for', kept.fire_at,
                          'until', kept.until_at, 'fires', kept.fires, 'reason', kept.code),
       statement_timestamp()
  FROM kept WHERE starts_with(kept.code, 'CATCHUP_');

-- name: read_far_jobs :many
-- Jobs of some shards whose next fire lies beyond an instant, a page of each: nothing of it is planned yet.
-- Scatter: one walk along an index per shard
-- Index: jobs_pkey
-- Returns: shard int2, id uuid, revision int4, next_fire_at timestamptz, updated_at timestamptz, schedule text
SELECT wanted.shard, far.*
  FROM unnest(:shards::smallint[], :afters::uuid[]) AS wanted (shard, after)
 CROSS JOIN LATERAL (
    SELECT id, revision, next_fire_at, updated_at, schedule::text AS schedule FROM betimes.jobs
     WHERE jobs.shard = wanted.shard AND jobs.id > wanted.after AND jobs.next_fire_at > :beyond::timestamptz
     ORDER BY jobs.id LIMIT :most::integer) AS far;

-- name: refresh_jobs :many
-- Replace next fires after the zone rules changed; an edit or an advance meanwhile wins.
-- Guard: revision and the fire it replaces
-- Returns: id uuid
UPDATE betimes.jobs
   SET next_fire_at = step.next_fire_at, tzdata = :tzdata::text
  FROM unnest(:ids::uuid[], :revisions::integer[], :expected::timestamptz[], :next_fires::timestamptz[])
       AS step (id, revision, expected, next_fire_at)
 WHERE jobs.shard = :shard::smallint AND jobs.id = step.id AND jobs.revision = step.revision
   AND jobs.next_fire_at = step.expected
RETURNING jobs.id;

-- name: auto_pause_jobs :many
-- Set jobs aside whose schedule can no longer be read, so that they do not stop their shard. The reason keeps the fire
-- from which on nobody has accounted for anything.
-- Index: jobs_next_fire_idx
-- Guard: revision and the fire it stands at
-- Returns: id uuid, updated_at timestamptz
UPDATE betimes.jobs
   SET state = 2, next_fire_at = NULL, updated_at = coalesce(:now::timestamptz, statement_timestamp()),
       state_reason = broken.reason::jsonb
  FROM unnest(:ids::uuid[], :revisions::integer[], :expected::timestamptz[], :reasons::text[])
       AS broken (id, revision, expected, reason)
 WHERE jobs.shard = :shard::smallint AND jobs.id = broken.id AND jobs.revision = broken.revision
   AND jobs.next_fire_at = broken.expected AND jobs.state = 0
RETURNING jobs.id, jobs.updated_at;
