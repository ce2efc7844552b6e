-- What tenants and queues have agreed upon: weights, ceilings, rates. Read often, so only what differs from the default.

-- name: read_tenant_rules :many
-- Tenants that are not like all others, or some of them by name.
-- Returns: tenant_id uuid, weight float4, most int8, per_minute int8, told_all bool
SELECT id AS tenant_id, weight, (quotas ->> 'max_in_flight')::bigint AS most, (quotas ->> 'runs_per_minute')::bigint AS per_minute,
       coalesce(settings ->> 'run_events' = 'all', false) AS told_all
  FROM betimes.tenants
 WHERE (weight <> 1 OR quotas ? 'max_in_flight' OR quotas ? 'runs_per_minute' OR settings ->> 'run_events' = 'all')
   AND (:tenants::uuid[] IS NULL OR id = ANY (:tenants::uuid[]));

-- name: read_queue_rules :many
-- Queues that are not like all others, or those of some tenants.
-- Returns: tenant_id uuid, name text, weight float4, fairness text, most int4, rate_limit int4, rate_per_ms int8, retry text
SELECT tenant_id, name, weight, fairness, max_concurrency AS most, rate_limit, rate_per_ms,
       (settings -> 'default_retry')::text AS retry
  FROM betimes.queues
 WHERE (weight <> 1 OR fairness <> 'tenant' OR max_concurrency IS NOT NULL OR rate_limit IS NOT NULL
        OR settings ? 'default_retry')
   AND (:tenants::uuid[] IS NULL OR tenant_id = ANY (:tenants::uuid[]));
