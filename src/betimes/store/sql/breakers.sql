-- Circuit breakers per tenant and origin, shared by the workers.

-- name: write_breakers :exec
-- Tell what is known about origins. A breaker is closed by whoever found its origin well, and opened by whoever did not.
-- Guard: the primary key; whoever probes right now is not disturbed by others who know no better
INSERT INTO betimes.breakers AS breakers (tenant_id, origin, state, failures, opened_at, probe_at, window_data, updated_at)
SELECT told.tenant_id, told.origin, told.state, told.failures, told.opened_at, told.probe_at, told.facts::jsonb,
       coalesce(:now::timestamptz, statement_timestamp())
  FROM unnest(:tenants::uuid[], :origins::text[], :states::smallint[], :failures::integer[], :opened::timestamptz[],
              :probes::timestamptz[], :facts::text[], :news::boolean[])
       AS told (tenant_id, origin, state, failures, opened_at, probe_at, facts, is_news)
 WHERE EXISTS (SELECT FROM betimes.tenants WHERE tenants.id = told.tenant_id)
   -- Who has asked nothing yet knows of no trouble, and closes nothing by that.
   AND (told.is_news OR told.state <> 0 OR NOT EXISTS (
        SELECT FROM betimes.breakers AS known
         WHERE known.tenant_id = told.tenant_id AND known.origin = told.origin AND known.state <> 0))
ON CONFLICT (tenant_id, origin) DO UPDATE
   SET state = excluded.state, failures = excluded.failures, opened_at = excluded.opened_at, probe_at = excluded.probe_at,
       probe_by = NULL, window_data = excluded.window_data, updated_at = excluded.updated_at
 -- Who has not heard yet that somebody closed it by hand does not open it again; a failure since then does.
 WHERE excluded.state = 0
    OR (breakers.reset_at IS NULL OR excluded.opened_at > breakers.reset_at)
   AND NOT (breakers.state = 2 AND breakers.probe_by <> :worker::uuid AND breakers.probe_at > excluded.updated_at);

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

-- name: note_origins :exec
-- Note of parcels that were just inserted for which origin's breaker they wait. Where the breaker has been closed meanwhile,
-- or nobody has heard yet that it is open, they wait for a moment only: nobody would come to wake them.
-- Index: parcels_pkey, breakers_broken_idx
-- Guard: the caller inserted them in this transaction; the row lock, for whose end whoever closes the breaker waits before
-- they wake those behind it
WITH waits AS MATERIALIZED (
    SELECT parcels.id, parcels.tenant_id, waits.origin
      FROM unnest(:ids::uuid[], :origins::text[]) AS waits (id, origin)
      JOIN betimes.parcels ON parcels.shard = :shard::smallint AND parcels.id = waits.id
), broken AS MATERIALIZED (
    SELECT breakers.tenant_id, breakers.origin FROM betimes.breakers
     WHERE (breakers.tenant_id, breakers.origin) IN (SELECT waits.tenant_id, waits.origin FROM waits) AND breakers.state <> 0
       FOR SHARE
)
UPDATE betimes.parcels
   SET origin = broken.origin,
       visible_at = CASE WHEN broken.origin IS NULL THEN least(parcels.visible_at, :soon::timestamptz) ELSE parcels.visible_at END
  FROM waits LEFT JOIN broken ON broken.tenant_id = waits.tenant_id AND broken.origin = waits.origin
 WHERE parcels.shard = :shard::smallint AND parcels.id = waits.id;

-- name: find_probers :many
-- Who of those that wait behind each of some breakers comes first, with the time; nobody where somebody probes right now.
-- Scatter: runs of one origin wait in many shards; one probe of an index per breaker
-- Index: parcels_origin_idx
-- Returns: number int8, shard int2, id uuid, visible_at timestamptz, rank timestamptz, now timestamptz
SELECT asked.number, one.shard, one.id, one.visible_at, one.rank, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM unnest(:tenants::uuid[], :origins::text[]) WITH ORDINALITY AS asked (tenant_id, origin, number)
 CROSS JOIN LATERAL (
    SELECT parcels.shard, parcels.id, parcels.visible_at, parcels.rank FROM betimes.parcels
     WHERE parcels.tenant_id = asked.tenant_id AND parcels.origin = asked.origin
       AND parcels.worker_id IS NULL AND parcels.held = 0
     ORDER BY parcels.visible_at, parcels.id LIMIT 1) AS one
 WHERE NOT EXISTS (
    SELECT FROM betimes.breakers
     WHERE breakers.tenant_id = asked.tenant_id AND breakers.origin = asked.origin AND breakers.probe_by IS NOT NULL
       AND breakers.probe_at > coalesce(:now::timestamptz, statement_timestamp()));

-- name: call_prober :exec
-- Bring the first run of a parcel that waits behind a breaker to the time of its probe; the others of it wait on.
-- Index: parcels_pkey
-- Guard: nobody holds it; SKIP LOCKED: who is being leased comes anyway
-- Published: the rest was in the parcel it is split from
WITH first AS MATERIALIZED (
    SELECT * FROM betimes.parcels
     WHERE shard = :shard::smallint AND id = :id::uuid AND worker_id IS NULL AND held = 0 AND origin IS NOT NULL
       FOR UPDATE SKIP LOCKED
), rest AS (
    INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids,
                                 handler, origin)
    SELECT :shard::smallint, gen_random_uuid(), tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries,
           run_ids[2:], handler, origin
      FROM first WHERE cardinality(run_ids) > 1
)
UPDATE betimes.parcels SET visible_at = :at::timestamptz, rank = :rank::timestamptz, run_ids = parcels.run_ids[1:1]
  FROM first
 WHERE parcels.shard = :shard::smallint AND parcels.id = first.id;

-- name: find_behind :many
-- What waits behind breakers, best rank first, and the time.
-- Scatter: runs of one origin wait in many shards
-- Index: parcels_origin_idx
-- Returns: shard int2, id uuid, tenant_id uuid, origin text, visible_at timestamptz, rank timestamptz, runs int4, now timestamptz
SELECT parcels.shard, parcels.id, parcels.tenant_id, parcels.origin, parcels.visible_at, parcels.rank,
       cardinality(parcels.run_ids) AS runs, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM unnest(:tenants::uuid[], :origins::text[]) AS closed (tenant_id, origin)
  JOIN betimes.parcels ON parcels.tenant_id = closed.tenant_id AND parcels.origin = closed.origin
 WHERE parcels.worker_id IS NULL
 ORDER BY parcels.rank, parcels.id LIMIT :most::integer;

-- name: bring_forward :exec
-- Bring parcels forward that waited for breakers which are closed.
-- Index: parcels_pkey
-- Guard: nobody holds them; whoever was leased meanwhile finds the breaker closed
UPDATE betimes.parcels SET visible_at = moved.at, rank = moved.rank, origin = NULL
  FROM unnest(:ids::uuid[], :times::timestamptz[], :ranks::timestamptz[]) AS moved (id, at, rank)
 WHERE parcels.shard = :shard::smallint AND parcels.id = moved.id AND parcels.worker_id IS NULL;
