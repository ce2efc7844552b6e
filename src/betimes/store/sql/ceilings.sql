-- Ceilings and rates of tenants and queues: locked, counted and written in the transaction that leases.

-- name: lock_ceilings :many
-- Lock the limits of some tenants and queues, in order, with what holds for them now and what is left of their tokens.
-- Index: limits_pkey
-- Guard: the row locks; whoever counts and leases does it alone
-- Returns: tenant_id uuid, kind text, key text, tokens float8, refilled_at timestamptz, most int8, rate_limit int8, rate_per_ms int8, now timestamptz
SELECT held.tenant_id, held.kind, held.key, held.tokens, held.refilled_at,
       CASE WHEN held.kind = 'tenant' THEN (tenants.quotas ->> 'max_in_flight')::bigint ELSE queues.max_concurrency END AS most,
       CASE WHEN held.kind = 'tenant' THEN (tenants.quotas ->> 'runs_per_minute')::bigint ELSE queues.rate_limit END AS rate_limit,
       CASE WHEN held.kind = 'tenant' THEN 60000 ELSE queues.rate_per_ms END AS rate_per_ms,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM (SELECT * FROM unnest(:tenants::uuid[], :kinds::text[], :keys::text[]) AS asked (tenant_id, kind, key)
         ORDER BY tenant_id, kind, key) AS wanted
 CROSS JOIN LATERAL (
    SELECT limits.tenant_id, limits.kind, limits.key, limits.tokens, limits.refilled_at FROM betimes.limits
     WHERE limits.tenant_id = wanted.tenant_id AND limits.kind = wanted.kind AND limits.key = wanted.key
       FOR UPDATE OF limits) AS held
  LEFT JOIN betimes.tenants ON tenants.id = wanted.tenant_id AND wanted.kind = 'tenant'
  LEFT JOIN betimes.queues ON queues.tenant_id = wanted.tenant_id AND queues.name = wanted.key AND wanted.kind = 'queue';

-- name: count_in_flight :many
-- How many runs the leased parcels of some tenants and queues hold. The caller holds their limits.
-- Scatter: a tenant's parcels lie in every shard
-- Index: parcels_in_flight_idx
-- Returns: number int8, runs int8
SELECT wanted.number,
       CASE WHEN wanted.queue IS NULL
            THEN (SELECT coalesce(sum(cardinality(run_ids)), 0) FROM betimes.parcels
                   WHERE worker_id IS NOT NULL AND parcels.tenant_id = wanted.tenant_id)
            ELSE (SELECT coalesce(sum(cardinality(run_ids)), 0) FROM betimes.parcels
                   WHERE worker_id IS NOT NULL AND parcels.tenant_id = wanted.tenant_id AND parcels.queue = wanted.queue)
       END::bigint AS runs
  FROM unnest(:tenants::uuid[], :queues::text[]) WITH ORDINALITY AS wanted (tenant_id, queue, number);
