-- Circuit breakers per tenant and origin, shared by the workers.

-- name: write_breakers :exec
-- Tell what is known about origins. A breaker is closed by whoever found its origin well, and opened by whoever did not.
-- Guard: the primary key
INSERT INTO betimes.breakers AS breakers (tenant_id, origin, state, failures, opened_at, probe_at, window_data, updated_at)
SELECT told.tenant_id, told.origin, told.state, told.failures, told.opened_at, told.probe_at, told.facts::jsonb,
       coalesce(:now::timestamptz, statement_timestamp())
  FROM unnest(:tenants::uuid[], :origins::text[], :states::smallint[], :failures::integer[], :opened::timestamptz[],
              :probes::timestamptz[], :facts::text[])
       AS told (tenant_id, origin, state, failures, opened_at, probe_at, facts)
 WHERE EXISTS (SELECT FROM betimes.tenants WHERE tenants.id = told.tenant_id)
ON CONFLICT (tenant_id, origin) DO UPDATE
   SET state = excluded.state, failures = excluded.failures, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
       probe_by = NULL, window_data = excluded.window_data, updated_at = excluded.updated_at
 -- Who has not heard yet that somebody closed it by hand does not open it again; a failure since then does.
 WHERE excluded.state = 0 OR breakers.reset_at IS NULL OR excluded.opened_at > breakers.reset_at;

-- name: reset_breaker :maybe
-- Close a breaker by hand.
-- Index: breakers_pkey
-- Returns: tenant_id uuid, origin text, state int2, failures int4, opened_at timestamptz, probe_at timestamptz, facts text, updated_at timestamptz
UPDATE betimes.breakers
   SET state = 0, failures = 0, opened_at = NULL, probe_at = NULL, probe_by = NULL,
       reset_at = coalesce(:now::timestamptz, statement_timestamp()), updated_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE tenant_id = :tenant::uuid AND origin = :origin::text
RETURNING tenant_id, origin, state, failures, opened_at, probe_at, window_data::text AS facts, updated_at;

-- name: broken_breakers :many
-- Every breaker that is not closed, and the time.
-- Index: breakers_broken_idx
-- Returns: tenant_id uuid, origin text, state int2, failures int4, opened_at timestamptz, probe_at timestamptz, facts text, updated_at timestamptz, now timestamptz
SELECT tenant_id, origin, state, failures, opened_at, probe_at, window_data::text AS facts, updated_at,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.breakers WHERE state <> 0 LIMIT :most::integer;

-- name: claim_probe :maybe
-- Be the one who probes an origin, for a while; nobody else may until then.
-- Guard: the time of the next probe
-- Returns: origin text
UPDATE betimes.breakers
   SET state = 2, probe_by = :worker::uuid, probe_at = coalesce(:now::timestamptz, statement_timestamp()) + :patience::interval
 WHERE tenant_id = :tenant::uuid AND origin = :origin::text AND state <> 0
   AND (probe_by IS NULL OR probe_by = :worker::uuid OR probe_at <= coalesce(:now::timestamptz, statement_timestamp()))
RETURNING origin;

-- name: list_breakers :many
-- What is known about the origins a tenant calls, in their order, page by page.
-- Index: breakers_pkey
-- Returns: tenant_id uuid, origin text, state int2, failures int4, opened_at timestamptz, probe_at timestamptz, facts text, updated_at timestamptz
SELECT tenant_id, origin, state, failures, opened_at, probe_at, window_data::text AS facts, updated_at
  FROM betimes.breakers WHERE tenant_id = :tenant::uuid AND origin > :after::text ORDER BY origin LIMIT :most::integer;
