-- Definitions: what to do and when. Every change is an edit under the revision, or a change of state.

-- name: insert_jobs :many
-- Insert jobs of one shard; an id or a name that is taken leaves its row out. They come as one JSON text, because an array
-- for each column costs whoever sends them several times as much.
-- Guard: the primary key, and one name per tenant and group
-- Returns: id uuid
INSERT INTO betimes.jobs (shard, id, tenant_id, job_group, name, next_fire_at, created_at, updated_at, fires, state, priority,
                          after_completion, queue, handler, tzdata, schedule, target, payload, options, created_by,
                          state_reason, untold)
SELECT :shard::smallint, fresh.id, fresh.tenant_id, fresh.job_group, fresh.name, fresh.next_fire_at, fresh.created_at,
       fresh.created_at, fresh.fires, fresh.state, fresh.priority, fresh.after_completion, fresh.queue, fresh.handler,
       :tzdata::text, fresh.schedule, fresh.target, fresh.payload, fresh.options, fresh.created_by,
       fresh.state_reason,
       -- Those with a single fire end as often as their runs do: told only to those who asked for it.
       fresh.state = 3 AND fresh.fires > 0
       AND (fresh.schedule ->> 'type' <> 'once'
            OR EXISTS (SELECT FROM betimes.tenants WHERE tenants.id = fresh.tenant_id AND settings ->> 'run_events' = 'all')
            OR EXISTS (SELECT FROM betimes.endpoints
                        WHERE endpoints.tenant_id = fresh.tenant_id AND disabled_at IS NULL
                          AND event_types && '{job.completed,job.*,*}'::text[]))
  FROM ROWS FROM (
        jsonb_to_recordset(:fresh_jobs::text::jsonb)
            AS (id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, created_at timestamptz, fires bigint,
                state smallint, priority smallint, after_completion smallint, queue text, handler text, schedule jsonb,
                target jsonb, options jsonb, created_by text, state_reason jsonb),
        unnest(:payloads::bytea[]))
       AS fresh (id, tenant_id, job_group, name, next_fire_at, created_at, fires, state, priority, after_completion, queue,
                 handler, schedule, target, options, created_by, state_reason, payload)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_job :maybe
-- One job by its id.
-- Index: jobs_pkey
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM betimes.jobs WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: read_jobs :many
-- Some jobs by their ids.
-- Scatter: callers who ask at the same time share a transaction, each key names its shard
-- Index: jobs_pkey
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  JOIN betimes.jobs USING (shard, id);

-- name: read_named_job :maybe
-- One job by its name.
-- Index: jobs_name_idx
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM betimes.jobs
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND job_group = :group::text AND name = :name::text;

-- name: lock_job :maybe
-- One job by its id, held until the transaction ends: no planner advances it meanwhile.
-- Index: jobs_pkey
-- Guard: the row lock; whoever waits for it tests state, revision and next fire again
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM betimes.jobs WHERE shard = :shard::smallint AND id = :id::uuid
   FOR UPDATE;

-- name: hold_jobs :many
-- Some jobs, held until the transaction ends, before anything of their runs is.
-- Index: jobs_pkey
-- Guard: the row locks, in the order of the ids
-- Returns: id uuid
SELECT id FROM betimes.jobs WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: list_jobs :many
-- Jobs of one tenant in the order of their ids, page by page.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT id, tenant_id, job_group, name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state, priority,
       after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM betimes.jobs WHERE tenant_id = :tenant::uuid AND id > :after::uuid
 ORDER BY id LIMIT :most::integer;

-- name: edit_job :maybe
-- Replace a definition; the revision rises.
-- Index: jobs_pkey
-- Guard: the revision it replaces, and the caller holds the row
-- Returns: revision int4
UPDATE betimes.jobs
   SET revision = revision + 1, updated_at = :now::timestamptz, next_fire_at = :next_fire_at::timestamptz, fires = :fires::bigint,
       state = :state::smallint, state_reason = :state_reason::text::jsonb, priority = :priority::smallint,
       after_completion = :after_completion::smallint, queue = :queue::text, handler = :handler::text, tzdata = :tzdata::text,
       schedule = :schedule::text::jsonb, target = :target::text::jsonb, payload = :payload::bytea, options = :options::text::jsonb,
       untold = untold AND :state::smallint = 3
 WHERE shard = :shard::smallint AND id = :id::uuid AND revision = :revision::integer
RETURNING revision;

-- name: steer_job :maybe
-- Change the state of a job and its next fire, not its definition. The caller holds the row.
-- Index: jobs_pkey
-- Returns: id uuid
UPDATE betimes.jobs
   SET state = :state::smallint, state_reason = :state_reason::text::jsonb, paused_until = :paused_until::timestamptz,
       next_fire_at = :next_fire_at::timestamptz, fires = :fires::bigint, tzdata = :tzdata::text, updated_at = :now::timestamptz,
       untold = untold AND :state::smallint = 3
 WHERE shard = :shard::smallint AND id = :id::uuid
RETURNING id;

-- name: keep_revision :exec
-- Keep a definition that is about to be replaced or deleted, for the runs that still use it.
-- Guard: the primary key; what was kept first stays
INSERT INTO betimes.job_revisions (shard, job_id, revision, tenant_id, replaced_at, replaced_by, definition, payload)
VALUES (:shard::smallint, :job::uuid, :revision::integer, :tenant::uuid, :now::timestamptz, :actor::text,
        :definition::text::jsonb, :payload::bytea)
ON CONFLICT DO NOTHING;

-- name: list_revisions :many
-- Definitions of a job as they were, newest first.
-- Index: job_revisions_pkey
-- Returns: revision int4, replaced_at timestamptz, replaced_by text, definition text, payload bytea
SELECT revision, replaced_at, replaced_by, definition::text AS definition, payload
  FROM betimes.job_revisions
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND tenant_id = :tenant::uuid
 ORDER BY revision DESC LIMIT :most::integer;

-- name: delete_job :maybe
-- Forget a job; its runs and old definitions stay until their retention ends.
-- Index: jobs_pkey
-- Returns: id uuid
DELETE FROM betimes.jobs WHERE shard = :shard::smallint AND id = :id::uuid RETURNING id;

-- name: find_elapsed_pauses :many
-- Jobs of one shard whose pause was to end by now.
-- Index: jobs_paused_until_idx
-- Returns: id uuid, tenant_id uuid
SELECT id, tenant_id FROM betimes.jobs
 WHERE shard = :shard::smallint AND paused_until <= coalesce(:now::timestamptz, statement_timestamp())
 ORDER BY paused_until LIMIT :most::integer;

-- name: find_spent_jobs :many
-- Jobs of one shard that are to go once they are complete and told, and no run of theirs is under way.
-- Index: jobs_spent_idx
-- Returns: id uuid, tenant_id uuid
SELECT jobs.id, jobs.tenant_id FROM betimes.jobs
 WHERE jobs.shard = :shard::smallint AND jobs.state = 3 AND jobs.after_completion = 1 AND NOT jobs.untold
   AND NOT EXISTS (SELECT FROM betimes.runs
                    WHERE runs.shard = :shard::smallint AND runs.job_id = jobs.id AND runs.state < 4)
 ORDER BY jobs.id LIMIT :most::integer;
