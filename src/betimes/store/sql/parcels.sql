-- The durable queue: handfuls of runs that wait, are leased, or wait for their retry.

-- name: read_near_due :many
-- Runs of some shards that still need a parcel, in the order of their dueness, a bounded number of each shard.
-- Scatter: one walk along an index per shard
-- Index: runs_pkey
-- Returns: shard int2, id uuid, tenant_id uuid, due_at timestamptz, priority int2, queue text, fair int2, gate text, when_full int2, line uuid, rate_key text, job_id uuid, overlap int2, handler text
SELECT wanted.shard, near.*
  FROM unnest(:shards::smallint[], :lows::uuid[]) AS wanted (shard, low)
 CROSS JOIN LATERAL (
    SELECT id, tenant_id, due_at, priority, queue, fair, gate, when_full, NULL::uuid AS line, rate_key, job_id, overlap, handler
      FROM betimes.runs
     WHERE runs.shard = wanted.shard AND runs.id >= wanted.low AND runs.id >= :low::uuid AND runs.id < :high::uuid
       AND runs.state = 0
     ORDER BY runs.id LIMIT :most::integer) AS near;

-- name: queue_runs :many
-- Say of runs that a parcel holds them, so that no read of what still needs one finds them again.
-- Index: runs_pkey
-- Guard: only those that wait for a parcel; the caller holds the shard and inserts the parcels of those that come back
-- Returns: id uuid
UPDATE betimes.runs SET state = 1
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state = 0
RETURNING id;

-- name: find_waiting :many
-- Which queues of which tenants have something visible, with the best rank of each, shard by shard,
-- from after some place on.
-- Scatter: skips along an index, one probe per (shard, queue, tenant, fairness bucket)
-- Index: parcels_ready_idx
-- Returns: shard int2, queue text, tenant_id uuid, fair int2, rank timestamptz
WITH RECURSIVE walk AS (
    (SELECT shard, queue, tenant_id, fair FROM betimes.parcels
      WHERE worker_id IS NULL AND held = 0
        AND (shard, queue, tenant_id, fair)
            > (:after_shard::smallint, :after_queue::text, :after_tenant::uuid, :after_fair::smallint)
      ORDER BY shard, queue, tenant_id, fair LIMIT 1)
    UNION ALL
    SELECT step.shard, step.queue, step.tenant_id, step.fair
      FROM walk CROSS JOIN LATERAL (
        SELECT shard, queue, tenant_id, fair FROM betimes.parcels
         WHERE worker_id IS NULL AND held = 0
           AND (shard, queue, tenant_id, fair) > (walk.shard, walk.queue, walk.tenant_id, walk.fair)
         ORDER BY shard, queue, tenant_id, fair LIMIT 1) AS step
)
SELECT walk.shard, walk.queue, walk.tenant_id, walk.fair, best.rank
  FROM walk CROSS JOIN LATERAL (
    SELECT rank FROM betimes.parcels
     WHERE parcels.shard = walk.shard AND parcels.queue = walk.queue AND parcels.tenant_id = walk.tenant_id
       AND parcels.fair = walk.fair AND worker_id IS NULL AND held = 0 AND visible_at <= coalesce(:now::timestamptz, statement_timestamp())
       AND (deliveries >= :suspect_after::integer) = :suspects::boolean
       AND (handler IS NULL OR handler = ANY (:handlers::text[]) OR (:handlers::text[] IS NULL AND left(handler, 1) <> ':'))
     ORDER BY rank LIMIT 1) AS best
 WHERE (:queues::text[] IS NULL OR walk.queue = ANY (:queues::text[]))
   AND (:tenant::uuid IS NULL OR walk.tenant_id = :tenant::uuid)
 LIMIT :most::integer;

-- name: read_best_ranks :many
-- The best rank of what is visible in some places; those in which nothing is are missing.
-- Scatter: one probe per place
-- Index: parcels_ready_idx
-- Returns: number int8, rank timestamptz
SELECT place.number, best.rank
  FROM unnest(:shards::smallint[], :queues::text[], :tenants::uuid[], :fairs::smallint[]) WITH ORDINALITY
       AS place (shard, queue, tenant_id, fair, number)
 CROSS JOIN LATERAL (
    SELECT parcels.rank FROM betimes.parcels
     WHERE parcels.shard = place.shard AND parcels.queue = place.queue AND parcels.tenant_id = place.tenant_id
       AND parcels.fair = place.fair AND worker_id IS NULL AND held = 0
       AND visible_at <= coalesce(:now::timestamptz, statement_timestamp()) AND deliveries < :suspect_after::integer
       AND (handler IS NULL OR handler = ANY (:handlers::text[]) OR (:handlers::text[] IS NULL AND left(handler, 1) <> ':'))
     ORDER BY parcels.rank LIMIT 1) AS best;

-- name: lease_parcels :many
-- Lease what fits into the free slots, best rank first; a parcel that is larger is split. A paused queue
-- gives nothing, and a paused cell gives nothing at all. What only others can do is left to them; who names no
-- handlers can do everything but what is ours, whose names begin with a colon.
-- Index: parcels_ready_idx
-- Guard: SKIP LOCKED keeps workers apart; the fence that rises here guards every later write
-- Published: the rest was in the parcel it is split from
-- Returns: id uuid, tenant_id uuid, queue text, priority int2, lane int2, visible_at timestamptz, fence int4, deliveries int4, run_ids _uuid, lease_until timestamptz, fair int2, gate text, when_full int2, line uuid, rate_key text
WITH picked AS MATERIALIZED (
    SELECT id, tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids, handler
      FROM betimes.parcels
     WHERE shard = :shard::smallint AND queue = :queue::text AND tenant_id = :tenant::uuid AND fair = :fair::smallint
       AND worker_id IS NULL AND held = 0 AND visible_at <= coalesce(:now::timestamptz, statement_timestamp())
       AND (deliveries >= :suspect_after::integer) = :suspects::boolean
       AND rank <= coalesce(:before::timestamptz, 'infinity')
       AND (handler IS NULL OR handler = ANY (:handlers::text[]) OR (:handlers::text[] IS NULL AND left(handler, 1) <> ':'))
       AND NOT EXISTS (SELECT FROM betimes.cluster WHERE cluster.paused_at IS NOT NULL)
       AND NOT EXISTS (
        SELECT FROM betimes.queues
         WHERE queues.tenant_id = :tenant::uuid AND queues.name = :queue::text AND queues.paused_at IS NOT NULL
           AND (queues.paused_until IS NULL OR queues.paused_until > coalesce(:now::timestamptz, statement_timestamp())))
     ORDER BY rank
     LIMIT :parcels_max::integer
       FOR UPDATE SKIP LOCKED
), sized AS (
    SELECT picked.*, sum(cardinality(run_ids)) OVER (ORDER BY rank, id) - cardinality(run_ids) AS before FROM picked
), taken AS (
    SELECT sized.*, least(cardinality(run_ids), :slots::integer - before)::integer AS keep
      FROM sized WHERE before < :slots::integer
), rest AS (
    INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids, handler)
    SELECT :shard::smallint, gen_random_uuid(), tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries,
           run_ids[keep + 1:], handler
      FROM taken WHERE keep < cardinality(run_ids)
)
UPDATE betimes.parcels
   SET worker_id = :worker::uuid, fence = parcels.fence + 1, deliveries = parcels.deliveries + 1,
       lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval,
       leased_at = coalesce(:now::timestamptz, statement_timestamp()), run_ids = parcels.run_ids[1:taken.keep]
  FROM taken
 WHERE parcels.shard = :shard::smallint AND parcels.id = taken.id
RETURNING parcels.id, parcels.tenant_id, parcels.queue, parcels.priority, parcels.lane, parcels.visible_at, parcels.fence,
          parcels.deliveries, parcels.run_ids, parcels.lease_until, parcels.fair, parcels.gate, parcels.when_full, parcels.line,
          parcels.rate_key;

-- name: read_scattered_runs :many
-- The same for runs of several shards.
-- Scatter: the runs of one claim, each by its primary key
-- Index: runs_pkey
-- Returns: id uuid, job_id uuid, revision int4, due_at timestamptz, fire_at timestamptz, first_started_at timestamptz, cancel_at timestamptz, attempt int2, trigger int2, handler text, payload bytea, options text, reason text
SELECT runs.id, job_id, revision, due_at, fire_at, first_started_at, cancel_at, attempt, trigger, handler, payload,
       options::text AS options, reason
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  JOIN betimes.runs ON runs.shard = wanted.shard AND runs.id = wanted.id
 WHERE runs.id >= :low::uuid AND state < 4;

-- name: read_wanted_runs :many
-- The runs of leased parcels that are still wanted; final and deleted ones drop out.
-- Index: runs_pkey
-- Returns: id uuid, job_id uuid, revision int4, due_at timestamptz, fire_at timestamptz, first_started_at timestamptz, cancel_at timestamptz, attempt int2, trigger int2, handler text, payload bytea, options text, reason text
-- Tenant, queue and priority are those of the parcel and are not sent again with every run.
SELECT id, job_id, revision, due_at, fire_at, first_started_at, cancel_at, attempt, trigger, handler, payload,
       options::text AS options, reason
  FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state < 4;

-- name: lock_own_parcels :many
-- Lock every parcel of a worker before its leases are prolonged, in the order in which a flush of
-- several shards locks them: whoever meets waits, and nobody waits in a circle.
-- Scatter: a worker holds parcels of many shards
-- Index: parcels_worker_idx
-- Returns: id uuid
SELECT id FROM betimes.parcels WHERE worker_id = :worker::uuid ORDER BY shard, id FOR UPDATE;

-- name: renew_parcels :many
-- Prolong every lease of a worker with one call.
-- Scatter: a worker holds parcels of many shards
-- Index: parcels_worker_idx
-- Guard: worker; the fences that come back tell which leases were lost
-- Returns: shard int2, id uuid, fence int4, now timestamptz
UPDATE betimes.parcels
   SET lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
 WHERE worker_id = :worker::uuid
RETURNING shard, id, fence, coalesce(:now::timestamptz, statement_timestamp()) AS now;

-- name: return_parcels :many
-- Give parcels back unfinished; the delivery does not count.
-- Index: parcels_pkey
-- Guard: worker and fence
-- Returns: id uuid
UPDATE betimes.parcels
   SET worker_id = NULL, lease_until = NULL, deliveries = deliveries - 1, slot = false
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[])
   AND worker_id IS NOT DISTINCT FROM :worker::uuid
   AND ((id, fence) IN (SELECT * FROM unnest(:ids::uuid[], :fences::integer[]))) IS TRUE
RETURNING id;

-- name: find_shards_to_reap :many
-- Which shards have a parcel whose lease ran out.
-- Scatter: one probe of an index per shard
-- Index: parcels_leased_idx
-- Returns: shard int2
SELECT shards.shard FROM betimes.shards
 WHERE EXISTS (SELECT FROM betimes.parcels
                WHERE parcels.shard = shards.shard AND worker_id IS NOT NULL
                  AND lease_until < coalesce(:now::timestamptz, statement_timestamp()));

-- name: find_expired :many
-- Parcels of one shard whose lease ran out, oldest first, locked.
-- Index: parcels_leased_idx
-- Guard: SKIP LOCKED: whoever finishes right now has won
-- Returns: id uuid, tenant_id uuid, worker_id uuid, queue text, priority int2, lane int2, rank timestamptz, visible_at timestamptz, fence int4, deliveries int4, run_ids _uuid, lease_until timestamptz, fair int2, gate text, when_full int2, line uuid, rate_key text, handler text
WITH expired AS MATERIALIZED (
    SELECT id, tenant_id, worker_id, queue, priority, lane, rank, visible_at, fence, deliveries, run_ids, lease_until, fair,
           gate, when_full, line, rate_key, handler
      FROM betimes.parcels
     WHERE shard = :shard::smallint AND worker_id IS NOT NULL
       AND lease_until < coalesce(:now::timestamptz, statement_timestamp())
     ORDER BY lease_until LIMIT :most::integer
       FOR UPDATE SKIP LOCKED
)
SELECT * FROM expired;

-- name: delete_parcels :exec
-- Take parcels out of the queue that the caller has locked in this transaction.
-- Index: parcels_pkey
DELETE FROM betimes.parcels WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]);

-- name: read_parcelled :many
-- Which of these runs some parcel of the shard holds.
-- Returns: run_id uuid, parcel_id uuid, worker_id uuid, fence int4, lease_until timestamptz, visible_at timestamptz, deliveries int4, leased_at timestamptz
SELECT held.run_id, parcels.id AS parcel_id, parcels.worker_id, parcels.fence, parcels.lease_until, parcels.visible_at,
       parcels.deliveries, parcels.leased_at
  FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
 WHERE parcels.shard = :shard::smallint AND parcels.run_ids && :runs::uuid[] AND held.run_id = ANY (:runs::uuid[]);

-- name: publish_parcels :many
-- Put the parcels of runs that are nearly due into the queue and move the cursors of their shards, for each shard all
-- or nothing. In a queue without fairness all keys stand in one row.
-- Scatter: the table of shards has one row per shard
-- Guard: owner, epoch and a lease that has not run out, and a cursor that is not yet there: a repeat inserts nothing
-- Published: the cursor passes them in the same statement
-- Returns: shard int2
WITH moved AS (
    UPDATE betimes.shards SET published_through = held.through
      FROM unnest(:claimed::smallint[], :epochs::bigint[], :throughs::timestamptz[]) AS held (shard, epoch, through)
     WHERE shards.shard = held.shard AND shards.owner = :node::uuid AND shards.epoch = held.epoch
       AND shards.lease_until >= coalesce(:now::timestamptz, statement_timestamp())
       AND (shards.published_through IS NULL OR shards.published_through < held.through)
    RETURNING shards.shard
), contents AS (
    SELECT number, array_agg(run_id ORDER BY position) AS run_ids
      FROM unnest(:numbers::integer[], :runs::uuid[]) WITH ORDINALITY AS run (number, run_id, position)
     GROUP BY number
), published AS (
    INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, rank, visible_at, run_ids, fair, when_full, gate, line,
                                 rate_key, handler)
    SELECT parcel.shard, parcel.id, parcel.tenant_id, parcel.queue, parcel.priority, parcel.rank, parcel.visible_at,
           contents.run_ids, CASE WHEN parcel.fair > 0 AND EXISTS (
                SELECT FROM betimes.queues
                 WHERE queues.tenant_id = parcel.tenant_id AND queues.name = parcel.queue AND queues.fairness = 'none')
                THEN 0 ELSE parcel.fair END, parcel.when_full, parcel.gate, parcel.line, parcel.rate_key, parcel.handler
      FROM unnest(:shards::smallint[], :ids::uuid[], :tenants::uuid[], :queues::text[], :priorities::smallint[], :ranks::timestamptz[],
                  :visible::timestamptz[], :fairs::smallint[], :whens::smallint[], :gates::text[], :lines::uuid[], :rate_keys::text[],
                  :handlers::text[])
           WITH ORDINALITY AS parcel (shard, id, tenant_id, queue, priority, rank, visible_at, fair, when_full, gate, line, rate_key,
                                      handler, number)
      JOIN contents ON contents.number = parcel.number
      JOIN moved ON moved.shard = parcel.shard
)
SELECT shard FROM moved;

-- name: insert_parcels :exec
-- Put parcels into the queue: in the transaction that inserts their runs, moves the cursor past them or moves them.
-- In a queue without fairness all keys stand in one row.
-- Guard: the caller's transaction; it inserts a run and its parcel together or not at all
-- Published: the caller has written a state other than 0 into their rows, or the cursor has passed them
WITH contents AS (
    SELECT number, array_agg(run_id ORDER BY position) AS run_ids
      FROM unnest(:numbers::integer[], :runs::uuid[]) WITH ORDINALITY AS run (number, run_id, position)
     GROUP BY number
)
INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, rank, visible_at, fence, deliveries, run_ids,
                             fair, when_full, gate, line, rate_key, held, held_at, handler)
SELECT parcel.shard, parcel.id, parcel.tenant_id, parcel.queue, parcel.priority, parcel.lane, parcel.rank,
       parcel.visible_at, parcel.fence, parcel.deliveries, contents.run_ids, CASE WHEN parcel.fair > 0 AND EXISTS (
            SELECT FROM betimes.queues
             WHERE queues.tenant_id = parcel.tenant_id AND queues.name = parcel.queue AND queues.fairness = 'none')
            THEN 0 ELSE parcel.fair END, parcel.when_full, parcel.gate,
       parcel.line, parcel.rate_key, parcel.held, CASE WHEN parcel.held > 0 THEN statement_timestamp() END,
       parcel.handler
  FROM unnest(:shards::smallint[], :ids::uuid[], :tenants::uuid[], :queues::text[], :priorities::smallint[], :lanes::smallint[],
              :ranks::timestamptz[], :visible::timestamptz[], :fences::integer[], :deliveries::integer[],
              :fairs::smallint[], :whens::smallint[], :gates::text[], :lines::uuid[], :rate_keys::text[], :holds::smallint[],
              :handlers::text[])
       WITH ORDINALITY AS parcel (shard, id, tenant_id, queue, priority, lane, rank, visible_at, fence, deliveries, fair, when_full,
                                  gate, line, rate_key, held, handler, number)
  JOIN contents ON contents.number = parcel.number;
