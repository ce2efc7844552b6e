-- Workers that speak HTTP: who they are, what waits for them, what they hold.

-- name: insert_worker :maybe
-- Register a worker; a repeated request changes nothing.
-- Guard: the primary key
-- Returns: id uuid
INSERT INTO betimes.workers (id, tenant_id, name, version, queues, handlers, slots, started_at, heartbeat_at, labels, details)
VALUES (:id::uuid, :tenant::uuid, :name::text, :version::text, :queues::text[], :handlers::text[], :slots::integer,
        :now::timestamptz, :now::timestamptz, :labels::text::jsonb, :facts::text::jsonb)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_worker :maybe
-- One worker of a tenant.
-- Returns: id uuid, tenant_id uuid, name text, version text, queues _text, handlers _text, slots int4, busy int4, started_at timestamptz, heartbeat_at timestamptz, draining bool, labels text, details text
SELECT id, tenant_id, name, version, queues, handlers, slots, busy, started_at, heartbeat_at, draining, labels::text AS labels,
       details::text AS details
  FROM betimes.workers WHERE id = :id::uuid AND tenant_id = :tenant::uuid;

-- name: read_leasing_worker :maybe
-- One worker of a tenant that asks for work, locked: its requests are served one after the other, and what the next
-- statement finds in its hands is all that it holds.
-- Guard: the row of the worker, which its heartbeats lock as well, before any parcel
-- Returns: queues _text, handlers _text, draining bool
SELECT queues, handlers, draining FROM betimes.workers
 WHERE id = :id::uuid AND tenant_id = :tenant::uuid FOR NO KEY UPDATE;

-- name: count_held :one
-- How many parcels a worker holds, and how many of them have cost several workers already.
-- Scatter: a worker holds parcels of many shards
-- Index: parcels_worker_idx
-- Returns: parcels int8, suspects int8
SELECT count(*) AS parcels, count(*) FILTER (WHERE deliveries > :suspect_after::integer) AS suspects
  FROM betimes.parcels WHERE worker_id = :worker::uuid;

-- name: list_workers :many
-- Workers of a tenant in the order of their registration, page by page.
-- Returns: id uuid, tenant_id uuid, name text, version text, queues _text, handlers _text, slots int4, busy int4, started_at timestamptz, heartbeat_at timestamptz, draining bool, labels text, details text
SELECT id, tenant_id, name, version, queues, handlers, slots, busy, started_at, heartbeat_at, draining, labels::text AS labels,
       details::text AS details
  FROM betimes.workers WHERE tenant_id = :tenant::uuid AND id > :after::uuid ORDER BY id LIMIT :most::integer;

-- name: beat_worker :maybe
-- Say that a worker is alive, and what it says of itself; once told to drain it stays so.
-- Guard: the queues that the caller's key is bound to, if it is
-- Returns: draining bool
UPDATE betimes.workers
   SET heartbeat_at = :now::timestamptz, busy = :busy::integer, draining = draining OR :draining::boolean,
       details = CASE WHEN :facts::text IS NULL THEN details ELSE coalesce(details, '{}') || :facts::text::jsonb END
 WHERE id = :id::uuid AND tenant_id = :tenant::uuid AND (:bound::text[] IS NULL OR queues <@ :bound::text[])
RETURNING draining;

-- name: delete_worker :maybe
-- Forget a worker.
-- Guard: the queues that the caller's key is bound to, if it is
-- Returns: id uuid
DELETE FROM betimes.workers
 WHERE id = :id::uuid AND tenant_id = :tenant::uuid AND (:bound::text[] IS NULL OR queues <@ :bound::text[])
RETURNING id;

-- name: free_worker :many
-- Give back what a worker holds that is about to be forgotten; the delivery does not count, and its leases are lost.
-- Scatter: a worker holds parcels of many shards
-- Index: parcels_worker_idx
-- Guard: the worker; whoever leases them next has a higher fence
-- Returns: shard int2, queue text, tenant_id uuid, fair int2, visible_at timestamptz
UPDATE betimes.parcels
   SET worker_id = NULL, lease_until = NULL, deliveries = greatest(deliveries - 1, 0), slot = false
 WHERE worker_id = :worker::uuid AND tenant_id IS NOT DISTINCT FROM :tenant::uuid
RETURNING shard, queue, tenant_id, fair, visible_at;

-- name: find_ready :many
-- Where something visible waits for one tenant in some queues that are not paused, best rank first.
-- Scatter: skips along an index, one probe per shard, queue and fairness bucket
-- Index: parcels_ready_idx
-- Returns: shard int2, queue text, tenant_id uuid, fair int2, rank timestamptz
WITH RECURSIVE walk AS (
    SELECT shards.shard, wanted.queue, first.fair
      FROM betimes.shards CROSS JOIN unnest(:queues::text[]) AS wanted (queue) CROSS JOIN LATERAL (
        SELECT fair FROM betimes.parcels
         WHERE parcels.shard = shards.shard AND parcels.queue = wanted.queue AND parcels.tenant_id = :tenant::uuid
           AND worker_id IS NULL AND held = 0
         ORDER BY fair LIMIT 1) AS first
     WHERE NOT EXISTS (
        SELECT FROM betimes.queues
         WHERE queues.tenant_id = :tenant::uuid AND queues.name = wanted.queue AND queues.paused_at IS NOT NULL
           AND (queues.paused_until IS NULL OR queues.paused_until > coalesce(:now::timestamptz, statement_timestamp())))
    UNION ALL
    SELECT walk.shard, walk.queue, step.fair
      FROM walk CROSS JOIN LATERAL (
        SELECT fair FROM betimes.parcels
         WHERE parcels.shard = walk.shard AND parcels.queue = walk.queue AND parcels.tenant_id = :tenant::uuid
           AND parcels.fair > walk.fair AND worker_id IS NULL AND held = 0
         ORDER BY fair LIMIT 1) AS step
)
SELECT walk.shard, walk.queue, :tenant::uuid AS tenant_id, walk.fair, best.rank
  FROM walk CROSS JOIN LATERAL (
    SELECT rank FROM betimes.parcels
     WHERE parcels.shard = walk.shard AND parcels.queue = walk.queue AND parcels.tenant_id = :tenant::uuid
       AND parcels.fair = walk.fair AND worker_id IS NULL AND held = 0
       AND visible_at <= coalesce(:now::timestamptz, statement_timestamp())
       AND (deliveries >= :suspect_after::integer) = :suspects::boolean
       AND (handler IS NULL OR handler = ANY (:handlers::text[]) OR (:handlers::text[] IS NULL AND left(handler, 1) <> ':'))
     ORDER BY rank LIMIT 1) AS best
 ORDER BY best.rank LIMIT :most::integer;

-- name: renew_held :many
-- Prolong the leases a remote worker still names; others run out. One that lasts longer already stays as it is.
-- Scatter: a worker holds parcels of many shards
-- Guard: worker and fence
-- Returns: id uuid, fence int4, lease_until timestamptz
UPDATE betimes.parcels
   SET lease_until = greatest(parcels.lease_until, coalesce(:now::timestamptz, statement_timestamp()) + held.ttl)
  FROM unnest(:shards::smallint[], :ids::uuid[], :fences::integer[], :ttls::interval[]) AS held (shard, id, fence, ttl)
 WHERE parcels.shard = held.shard AND parcels.id = held.id AND parcels.fence = held.fence AND parcels.worker_id = :worker::uuid
RETURNING parcels.id, parcels.fence, parcels.lease_until;

-- name: holds :maybe
-- Whether a worker still holds a run under a fence.
-- Index: parcels_pkey
-- Returns: id uuid
SELECT id FROM betimes.parcels
 WHERE shard = :shard::smallint AND id = :parcel::uuid AND fence = :fence::integer AND worker_id = :worker::uuid
   AND :run::uuid = ANY (run_ids);

-- name: note_run :maybe
-- Keep what a worker says about a run it holds; what is not said stays.
-- Index: parcels_pkey
-- Guard: worker and fence of the parcel that holds the run; an older fence writes nothing
-- Returns: run_id uuid
INSERT INTO betimes.run_notes AS notes (shard, run_id, tenant_id, fence, percent, message, checkpoint, updated_at)
SELECT parcels.shard, :run::uuid, :tenant::uuid, parcels.fence, :percent::real, :message::text, :checkpoint::bytea,
       :now::timestamptz
  FROM betimes.parcels
 WHERE shard = :shard::smallint AND id = :parcel::uuid AND fence = :fence::integer AND worker_id = :worker::uuid
   AND :run::uuid = ANY (run_ids)
ON CONFLICT (shard, run_id) DO UPDATE
   SET fence = excluded.fence, percent = coalesce(excluded.percent, notes.percent),
       message = coalesce(excluded.message, notes.message), checkpoint = coalesce(excluded.checkpoint, notes.checkpoint),
       updated_at = excluded.updated_at
 WHERE notes.fence <= excluded.fence
RETURNING run_id;

-- name: note_metrics :exec
-- Keep what workers measured, with the ends of runs that were just written.
-- Guard: the caller has written these ends under the fences of their parcels
INSERT INTO betimes.run_notes AS notes (shard, run_id, tenant_id, fence, metrics, updated_at)
SELECT :shard::smallint, ended.run_id, :tenant::uuid, ended.fence, ended.metrics::jsonb, :now::timestamptz
  FROM unnest(:runs::uuid[], :fences::integer[], :metrics::text[]) AS ended (run_id, fence, metrics)
ON CONFLICT (shard, run_id) DO UPDATE
   SET fence = excluded.fence, metrics = excluded.metrics, updated_at = excluded.updated_at;

-- name: read_notes :many
-- What workers have said about some runs of one shard.
-- Returns: run_id uuid, percent float4, message text, checkpoint bytea, metrics text
SELECT run_id, percent, message, checkpoint, metrics::text AS metrics FROM betimes.run_notes
 WHERE shard = :shard::smallint AND run_id = ANY (:runs::uuid[]);

-- name: append_logs :one
-- Add lines to the log of a run, numbered on from its last one.
-- Index: run_logs_pkey
-- Returns: lines int8
WITH last AS (
    SELECT coalesce(max(seq), 0) AS seq FROM betimes.run_logs WHERE shard = :shard::smallint AND run_id = :run::uuid
), added AS (
    INSERT INTO betimes.run_logs (shard, run_id, seq, tenant_id, attempt, at, level, message, fields)
    SELECT :shard::smallint, :run::uuid, last.seq + line.number, :tenant::uuid, :attempt::smallint, line.at, line.level,
           line.message, line.fields::jsonb
      FROM last CROSS JOIN unnest(:times::timestamptz[], :levels::text[], :messages::text[], :fields::text[])
           WITH ORDINALITY AS line (at, level, message, fields, number)
    RETURNING 1
)
SELECT count(*) AS lines FROM added;

-- name: read_logs :many
-- Lines of the log of a run, in order, page by page.
-- Index: run_logs_pkey
-- Returns: seq int4, attempt int2, at timestamptz, level text, message text, fields text
SELECT seq, attempt, at, level, message, fields::text AS fields FROM betimes.run_logs
 WHERE shard = :shard::smallint AND run_id = :run::uuid AND seq > :after::integer
   AND (:attempt::smallint IS NULL OR attempt = :attempt::smallint)
   AND (:levels::text[] IS NULL OR level = ANY (:levels::text[]))
 ORDER BY seq LIMIT :most::integer;

-- name: read_last_logs :many
-- The last lines of the log of a run, newest first.
-- Index: run_logs_pkey
-- Returns: seq int4, attempt int2, at timestamptz, level text, message text, fields text
SELECT seq, attempt, at, level, message, fields::text AS fields FROM betimes.run_logs
 WHERE shard = :shard::smallint AND run_id = :run::uuid AND seq > :after::integer
   AND (:attempt::smallint IS NULL OR attempt = :attempt::smallint)
   AND (:levels::text[] IS NULL OR level = ANY (:levels::text[]))
 ORDER BY seq DESC LIMIT :most::integer;
