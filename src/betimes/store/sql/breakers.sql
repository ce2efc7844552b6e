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
-- Note of parcels that were just inserted for which origin's breaker they wait.
-- Index: parcels_pkey
-- Guard: the caller inserted them in this transaction
UPDATE betimes.parcels SET origin = waits.origin
  FROM unnest(:ids::uuid[], :origins::text[]) AS waits (id, origin)
 WHERE parcels.shard = :shard::smallint AND parcels.id = waits.id;

-- name: call_probers :exec
-- Bring one run of those that wait behind each of some breakers to the time of its next probe, unless one comes by then.
-- Scatter: runs of one origin wait in many shards; one probe of an index per breaker
-- Index: parcels_origin_idx
-- Guard: nobody holds it, and nobody probes; SKIP LOCKED: who is being leased comes anyway
WITH picked AS MATERIALIZED (
    SELECT one.*, coalesce(:now::timestamptz, statement_timestamp()) + asked.pause AS at
      FROM unnest(:tenants::uuid[], :origins::text[], :pauses::interval[]) AS asked (tenant_id, origin, pause)
     CROSS JOIN LATERAL (
        SELECT parcels.* FROM betimes.parcels
         WHERE parcels.tenant_id = asked.tenant_id AND parcels.origin = asked.origin
           AND parcels.worker_id IS NULL AND parcels.held = 0
         ORDER BY parcels.visible_at, parcels.id LIMIT 1
           FOR UPDATE SKIP LOCKED) AS one
     WHERE one.visible_at > coalesce(:now::timestamptz, statement_timestamp()) + asked.pause
       AND NOT EXISTS (
        SELECT FROM betimes.breakers
         WHERE breakers.tenant_id = asked.tenant_id AND breakers.origin = asked.origin AND breakers.probe_by IS NOT NULL
           AND breakers.probe_at > coalesce(:now::timestamptz, statement_timestamp()))
), rest AS (
    INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids,
                                 handler, origin)
    SELECT shard, gen_random_uuid(), tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids[2:],
           handler, origin
      FROM picked WHERE cardinality(run_ids) > 1
)
UPDATE betimes.parcels
   SET visible_at = picked.at, rank = parcels.rank - (parcels.visible_at - picked.at), run_ids = parcels.run_ids[1:1]
  FROM picked
 WHERE parcels.shard = picked.shard AND parcels.id = picked.id;

-- name: wake_waiting :many
-- Bring those forward that wait for breakers which are closed, at the pace at which the origins are asked by then.
-- Scatter: runs of one origin wait in many shards
-- Index: parcels_origin_idx
-- Guard: nobody holds them; SKIP LOCKED: who is being leased finds the breaker closed
-- Returns: id uuid
WITH woken AS MATERIALIZED (
    SELECT parcels.shard, parcels.id, parcels.tenant_id, parcels.origin, parcels.rank, cardinality(parcels.run_ids) AS runs
      FROM unnest(:tenants::uuid[], :origins::text[]) AS closed (tenant_id, origin)
      JOIN betimes.parcels ON parcels.tenant_id = closed.tenant_id AND parcels.origin = closed.origin
     WHERE parcels.worker_id IS NULL
     ORDER BY parcels.rank LIMIT :most::integer
       FOR UPDATE OF parcels SKIP LOCKED
), placed AS (
    SELECT woken.shard, woken.id, coalesce(:now::timestamptz, statement_timestamp()) + interval '1 s' * (:doubles::float8
           * ln(1 + sum(woken.runs) OVER (PARTITION BY woken.tenant_id, woken.origin ORDER BY woken.rank, woken.id)
                / (:start::float8 * :doubles::float8)) / ln(2.0)) AS at
      FROM woken
)
UPDATE betimes.parcels
   SET visible_at = least(parcels.visible_at, placed.at),
       rank = parcels.rank - greatest(parcels.visible_at - placed.at, interval '0'), origin = NULL
  FROM placed
 WHERE parcels.shard = placed.shard AND parcels.id = placed.id
RETURNING parcels.id;
