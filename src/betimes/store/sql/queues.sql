-- Queues: settings of a tenant's queues, and what waits in them. A queue without a row has the defaults.

-- name: list_queues :many
-- Queues of a tenant that have settings, by name.
-- Returns: name text, weight float4, max_concurrency int4, settings text, paused_at timestamptz, paused_until timestamptz, paused_reason text, draining bool, drain_until timestamptz, drain_reason text, revision int4, updated_at timestamptz
SELECT name, weight, max_concurrency, settings::text AS settings, paused_at, paused_until, paused_reason, draining, drain_until,
       drain_reason, revision, updated_at
  FROM betimes.queues WHERE tenant_id = :tenant::uuid AND name > :after::text ORDER BY name LIMIT :most::integer;

-- name: count_queues :one
-- How many queues of a tenant beside one have settings.
-- Returns: queues int8
SELECT count(*) AS queues FROM betimes.queues WHERE tenant_id = :tenant::uuid AND name <> :beside::text;

-- name: read_queue :maybe
-- One queue that has settings.
-- Returns: name text, weight float4, max_concurrency int4, settings text, paused_at timestamptz, paused_until timestamptz, paused_reason text, draining bool, drain_until timestamptz, drain_reason text, revision int4, updated_at timestamptz
SELECT name, weight, max_concurrency, settings::text AS settings, paused_at, paused_until, paused_reason, draining, drain_until,
       drain_reason, revision, updated_at
  FROM betimes.queues WHERE tenant_id = :tenant::uuid AND name = :name::text;

-- name: put_queue :one
-- Store the settings of a queue; its pause stays as it is.
-- Guard: the primary key
-- Returns: revision int4
INSERT INTO betimes.queues AS queues (tenant_id, name, settings, weight, fairness, max_concurrency, rate_limit, rate_per_ms,
                                      key_rate_limit, key_rate_per_ms, retain_ms, dead_letter, updated_at)
VALUES (:tenant::uuid, :name::text, :settings::text::jsonb, :weight::real, :fairness::text, :max_concurrency::integer,
        :rate_limit::integer, :rate_per_ms::bigint, :key_rate_limit::integer, :key_rate_per_ms::bigint, :retain_ms::bigint,
        :dead_letter::boolean, :now::timestamptz)
ON CONFLICT (tenant_id, name) DO UPDATE
   SET settings = excluded.settings, weight = excluded.weight, fairness = excluded.fairness,
       max_concurrency = excluded.max_concurrency, rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms,
       key_rate_limit = excluded.key_rate_limit, key_rate_per_ms = excluded.key_rate_per_ms, retain_ms = excluded.retain_ms,
       dead_letter = excluded.dead_letter, revision = queues.revision + 1, updated_at = excluded.updated_at
RETURNING revision;

-- name: pause_queue :one
-- Pause a queue, or resume it; its settings stay as they are.
-- Guard: the primary key
-- Returns: revision int4
INSERT INTO betimes.queues AS queues (tenant_id, name, paused_at, paused_until, paused_reason, updated_at)
VALUES (:tenant::uuid, :name::text, :paused_at::timestamptz, :until::timestamptz, :reason::text, :now::timestamptz)
ON CONFLICT (tenant_id, name) DO UPDATE
   SET paused_at = excluded.paused_at, paused_until = excluded.paused_until, paused_reason = excluded.paused_reason,
       updated_at = excluded.updated_at
RETURNING revision;

-- name: delete_queue :maybe
-- Forget the settings of a queue.
-- Returns: name text
DELETE FROM betimes.queues WHERE tenant_id = :tenant::uuid AND name = :name::text RETURNING name;

-- name: measure_queue :one
-- What waits in a queue, is under way, and since when the oldest waits.
-- Scatter: a tenant's parcels lie in every shard
-- Returns: waiting int8, running int8, later int8, oldest timestamptz, now timestamptz
SELECT coalesce(sum(cardinality(run_ids)) FILTER (WHERE worker_id IS NULL AND visible_at <= clock_timestamp()), 0)::bigint AS waiting,
       coalesce(sum(cardinality(run_ids)) FILTER (WHERE worker_id IS NOT NULL), 0)::bigint AS running,
       coalesce(sum(cardinality(run_ids)) FILTER (WHERE worker_id IS NULL AND visible_at > clock_timestamp()), 0)::bigint AS later,
       min(visible_at) FILTER (WHERE worker_id IS NULL AND visible_at <= clock_timestamp()) AS oldest,
       clock_timestamp() AS now
  FROM betimes.parcels WHERE tenant_id = :tenant::uuid AND queue = :name::text;

-- name: names_in_use :many
-- Names of queues in which something waits or runs.
-- Scatter: a tenant's parcels lie in every shard
-- Returns: name text
SELECT DISTINCT queue AS name FROM betimes.parcels WHERE tenant_id = :tenant::uuid ORDER BY 1 LIMIT :most::integer;

-- name: drain_queue :one
-- Accept nothing new for a queue, or do so again.
-- Guard: the primary key
-- Returns: name text
INSERT INTO betimes.queues AS queues (tenant_id, name, draining, drain_until, drain_reason, updated_at)
VALUES (:tenant::uuid, :name::text, :draining::boolean, :until::timestamptz, :reason::text, :now::timestamptz)
ON CONFLICT (tenant_id, name) DO UPDATE
   SET draining = excluded.draining, drain_until = excluded.drain_until, drain_reason = excluded.drain_reason,
       updated_at = excluded.updated_at
RETURNING queues.name;

-- name: draining_queues :many
-- The queues of a tenant that accept nothing new, and why.
-- Returns: name text, drain_reason text
SELECT name, drain_reason FROM betimes.queues
 WHERE tenant_id = :tenant::uuid AND draining AND (drain_until IS NULL OR drain_until > clock_timestamp())
 LIMIT :most::integer;
