-- Why something did or did not run.

-- name: read_decision :maybe
-- The decision that covers a fire time of a job, if it did not become a run.
-- Index: decisions_pkey
-- Returns: fire_at timestamptz, until_at timestamptz, fires int8, decided_at timestamptz, code text, detail text
SELECT fire_at, until_at, fires, decided_at, code, detail::text AS detail FROM betimes.decisions
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND fire_at <= :at::timestamptz
   AND coalesce(until_at, fire_at) >= :at::timestamptz
 ORDER BY fire_at DESC LIMIT 1;

-- name: list_decisions :many
-- The latest fires of a job that did not become runs.
-- Index: decisions_pkey
-- Returns: fire_at timestamptz, until_at timestamptz, fires int8, decided_at timestamptz, code text, detail text
SELECT fire_at, until_at, fires, decided_at, code, detail::text AS detail FROM betimes.decisions
 WHERE shard = :shard::smallint AND job_id = :job::uuid ORDER BY fire_at DESC LIMIT :most::integer;

-- name: read_parcel_of :maybe
-- The parcel that holds a run, with everything that decides when it is leased. Where there are many parcels they hold
-- one run each, and are named after it.
-- Returns: id uuid, worker_id uuid, rank timestamptz, visible_at timestamptz, lease_until timestamptz, deliveries int4, lane int2, fair int2, held int2, held_at timestamptz, line uuid, gate text, rate_key text, episode uuid
SELECT id, worker_id, rank, visible_at, lease_until, deliveries, lane, fair, held, held_at, line, gate, rate_key, episode
  FROM betimes.parcels WHERE shard = :shard::smallint AND id = :run::uuid AND :run::uuid = ANY (run_ids)
UNION ALL
SELECT id, worker_id, rank, visible_at, lease_until, deliveries, lane, fair, held, held_at, line, gate, rate_key, episode
  FROM betimes.parcels WHERE shard = :shard::smallint AND :run::uuid = ANY (run_ids)
LIMIT 1;

-- name: read_blocker :maybe
-- The run that stood in the way of one that was skipped.
-- Index: runs_pkey
-- Returns: blocked_by uuid
SELECT blocked_by FROM betimes.runs WHERE shard = :shard::smallint AND id = :run::uuid AND blocked_by IS NOT NULL;

-- name: read_overlaps :one
-- How many of the last fires of a job were skipped for overlap, since when, and what the last of them gave way to.
-- Index: runs_job_idx
-- Returns: looked_at int8, skipped int8, since timestamptz, blocked_by uuid
SELECT count(*) AS looked_at, count(*) FILTER (WHERE reason = 'OVERLAP_SKIPPED') AS skipped,
       min(finished_at) FILTER (WHERE reason = 'OVERLAP_SKIPPED') AS since,
       (array_agg(blocked_by ORDER BY id DESC) FILTER (WHERE reason = 'OVERLAP_SKIPPED'))[1] AS blocked_by
  FROM (SELECT id, reason, finished_at, blocked_by FROM betimes.runs
         WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid AND trigger IN (0, 3)
         ORDER BY id DESC LIMIT :most::integer) AS lately;

-- name: read_gate :one
-- A concurrency key: its limit, what is in flight, which runs hold it, and how many wait before a rank.
-- Scatter: a key may be used in every shard
-- Index: parcels_gate_idx
-- Returns: max_inflight int4, in_flight int8, holders _uuid, ahead int8
SELECT (SELECT max_inflight FROM betimes.limits
         WHERE tenant_id = :tenant::uuid AND kind = 'key' AND key = :gate::text) AS max_inflight,
       (SELECT count(*) FROM betimes.parcels WHERE tenant_id = :tenant::uuid AND gate = :gate::text AND slot) AS in_flight,
       ARRAY(SELECT run_ids[1] FROM betimes.parcels
              WHERE tenant_id = :tenant::uuid AND gate = :gate::text AND slot ORDER BY rank LIMIT 5) AS holders,
       (SELECT count(*) FROM (
            SELECT FROM betimes.parcels
             WHERE tenant_id = :tenant::uuid AND gate = :gate::text AND rank < :rank::timestamptz AND NOT slot
             LIMIT :most::integer) AS earlier) AS ahead;

-- name: read_line :one
-- The line of a job: which run is in flight, and how many wait before a rank.
-- Index: parcels_line_idx
-- Returns: holders _uuid, ahead int8
SELECT ARRAY(SELECT run_ids[1] FROM betimes.parcels
              WHERE shard = :shard::smallint AND line = :job::uuid AND slot ORDER BY rank LIMIT 5) AS holders,
       (SELECT count(*) FROM (
            SELECT FROM betimes.parcels
             WHERE shard = :shard::smallint AND line = :job::uuid AND rank < :rank::timestamptz AND NOT slot
             LIMIT :most::integer) AS earlier) AS ahead;

-- name: read_rates :many
-- The rates that a run of a queue stands under: its tenant's, its queue's and that of its key, with what is left of each.
-- Index: limits_pkey
-- Returns: kind text, key text, tokens float8, refilled_at timestamptz, rate_limit int8, rate_per_ms int8
SELECT under.kind, under.key, limits.tokens, limits.refilled_at,
       CASE under.kind WHEN 'tenant' THEN (tenants.quotas ->> 'runs_per_minute')::bigint WHEN 'queue' THEN queues.rate_limit
                       ELSE coalesce(limits.rate_limit, queues.key_rate_limit) END::bigint AS rate_limit,
       CASE under.kind WHEN 'tenant' THEN 60000 WHEN 'queue' THEN queues.rate_per_ms
                       ELSE coalesce(limits.rate_per_ms, queues.key_rate_per_ms) END::bigint AS rate_per_ms
  FROM (VALUES ('tenant', ''), ('queue', :queue::text), ('rate', :rate_key::text)) AS under (kind, key)
  JOIN betimes.tenants ON tenants.id = :tenant::uuid
  LEFT JOIN betimes.queues ON queues.tenant_id = :tenant::uuid AND queues.name = :queue::text
  LEFT JOIN betimes.limits ON limits.tenant_id = :tenant::uuid AND limits.kind = under.kind AND limits.key = under.key
 WHERE under.key IS NOT NULL;

-- name: count_rated :one
-- How many wait for the same rate before a rank.
-- Scatter: a rate may be used in every shard
-- Index: parcels_rate_idx
-- Returns: ahead int8
SELECT count(*) AS ahead FROM (
    SELECT FROM betimes.parcels
     WHERE tenant_id = :tenant::uuid AND rate_key = :rate_key::text AND rate_key IS NOT NULL AND held IN (0, 4)
       AND worker_id IS NULL AND rank < :rank::timestamptz
     LIMIT :most::integer) AS earlier;

-- name: read_standing :one
-- What is offered before a rank in the same queue, over all shards: how many runs, how many of them with a higher
-- priority, whether a shard has more of them than are looked at; whether other fairness keys of the tenant wait there, too.
-- Scatter: one range of an index per shard, a bounded number of rows of each
-- Index: parcels_ready_idx
-- Returns: ahead int8, higher int8, more bool, others bool, head timestamptz
SELECT coalesce(sum(earlier.ahead), 0)::bigint AS ahead, coalesce(sum(earlier.higher), 0)::bigint AS higher,
       coalesce(bool_or(earlier.parcels >= :most::integer), false) AS more,
       EXISTS (SELECT FROM unnest(:shards::smallint[]) AS place (shard) CROSS JOIN LATERAL (
                 SELECT FROM betimes.parcels
                  WHERE parcels.shard = place.shard AND queue = :queue::text AND tenant_id = :tenant::uuid
                    AND fair <> :fair::smallint AND worker_id IS NULL AND held = 0 LIMIT 1) AS other) AS others,
       min(earlier.head) AS head
  FROM unnest(:shards::smallint[]) AS place (shard) CROSS JOIN LATERAL (
    SELECT count(*) AS parcels, sum(runs) AS ahead, sum(runs) FILTER (WHERE priority > :priority::smallint) AS higher,
           min(visible_at) AS head
      FROM (SELECT cardinality(run_ids) AS runs, priority, visible_at FROM betimes.parcels
             WHERE parcels.shard = place.shard AND queue = :queue::text AND tenant_id = :tenant::uuid
               AND fair = :fair::smallint AND worker_id IS NULL AND held = 0
               AND rank <= :rank::timestamptz AND (rank < :rank::timestamptz OR id < :parcel::uuid)
             ORDER BY rank LIMIT :most::integer) AS before) AS earlier;

-- name: read_job_pace :one
-- How long the last runs of a job took.
-- Index: runs_job_idx
-- Returns: took interval
SELECT avg(finished_at - started_at) AS took
  FROM (SELECT started_at, finished_at FROM betimes.runs
         WHERE shard = :shard::smallint AND job_id = :job::uuid AND id < :high::uuid
         ORDER BY id DESC LIMIT :most::integer) AS lately
 WHERE started_at IS NOT NULL AND finished_at IS NOT NULL;

-- name: read_places :one
-- Workers of a tenant and of the service that serve a queue: how many, with the handler, on their way out, places.
-- Returns: serving int8, able int8, draining int8, slots int8, busy int8
SELECT count(*) FILTER (WHERE NOT draining) AS serving,
       count(*) FILTER (WHERE NOT draining AND (:handler::text IS NULL OR cardinality(handlers) = 0
                                                OR :handler::text = ANY (handlers))) AS able,
       count(*) FILTER (WHERE draining) AS draining,
       coalesce(sum(slots) FILTER (WHERE NOT draining), 0)::bigint AS slots,
       coalesce(sum(busy) FILTER (WHERE NOT draining), 0)::bigint AS busy
  FROM betimes.workers
 WHERE heartbeat_at > :since::timestamptz AND (tenant_id IS NULL OR tenant_id = :tenant::uuid)
   AND (:queue::text = ANY (queues) OR '*' = ANY (queues));

-- name: read_crowd :one
-- What leased parcels of a tenant hold, in all and of one queue.
-- Scatter: a tenant's parcels lie in every shard
-- Index: parcels_in_flight_idx
-- Returns: of_tenant int8, of_queue int8
SELECT coalesce(sum(cardinality(run_ids)), 0)::bigint AS of_tenant,
       coalesce(sum(cardinality(run_ids)) FILTER (WHERE queue = :queue::text), 0)::bigint AS of_queue
  FROM betimes.parcels WHERE tenant_id = :tenant::uuid AND worker_id IS NOT NULL;

-- name: read_pace :one
-- How many runs of a queue ended lately, and since when: what a wait is estimated from. A bounded number of rows is
-- looked at, ended or not.
-- Scatter: a tenant's runs lie in every shard
-- Returns: ended int8, since timestamptz
SELECT count(*) AS ended, min(finished_at) AS since
  FROM (SELECT queue, finished_at FROM betimes.runs
         WHERE tenant_id = :tenant::uuid AND id < :high::uuid AND id >= :low::uuid
         ORDER BY id DESC LIMIT :most::integer) AS lately
 WHERE queue = :queue::text AND finished_at >= :since::timestamptz;

-- name: read_surroundings :maybe
-- What stands above a run: cluster, tenant, shard.
-- Index: shards_pkey
-- Returns: cluster_paused_at timestamptz, tenant_state int2, tenant_reason text, quotas text, owner uuid, lease_until timestamptz, published_through timestamptz
SELECT (SELECT paused_at FROM betimes.cluster WHERE one) AS cluster_paused_at, tenants.state AS tenant_state,
       tenants.state_reason AS tenant_reason, tenants.quotas::text AS quotas, shards.owner, shards.lease_until,
       shards.published_through
  FROM betimes.shards CROSS JOIN betimes.tenants
 WHERE shards.shard = :shard::smallint AND tenants.id = :tenant::uuid;
