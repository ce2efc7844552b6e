-- Declared sets of jobs.

-- name: read_named_jobs :many
-- Jobs of one tenant by group and name, each in the shard its name says.
-- Scatter: the names of a set lie in many shards, each is one probe
-- Returns: id uuid, tenant_id uuid, job_group text, name text, next_fire_at timestamptz, paused_until timestamptz, created_at timestamptz, updated_at timestamptz, revision int4, fires int8, state int2, priority int2, after_completion int2, queue text, handler text, tzdata text, schedule text, target text, payload bytea, options text, state_reason text, created_by text
SELECT jobs.id, tenant_id, jobs.job_group, jobs.name, next_fire_at, paused_until, created_at, updated_at, revision, fires, state,
       priority, after_completion, queue, handler, tzdata, schedule::text AS schedule, target::text AS target, payload,
       options::text AS options, state_reason::text AS state_reason, created_by
  FROM unnest(:shards::smallint[], :groups::text[], :names::text[]) AS wanted (shard, job_group, name)
  JOIN betimes.jobs ON jobs.shard = wanted.shard AND jobs.tenant_id = :tenant::uuid AND jobs.job_group = wanted.job_group
   AND jobs.name = wanted.name;
