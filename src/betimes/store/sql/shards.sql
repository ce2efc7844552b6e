-- Ownership of slices of the job space. Tiny tables: statements over all owned shards are allowed.

-- name: read_shards :many
-- Every shard, its owner, its lease and whether that has run out by the database clock.
-- Scatter: the table has one row per shard
-- Returns: shard int2, owner uuid, epoch int8, lease_until timestamptz, expired bool, now timestamptz
SELECT shard, owner, epoch, lease_until,
       coalesce(lease_until < coalesce(:now::timestamptz, statement_timestamp()), true) AS expired,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards ORDER BY shard;

-- name: acquire_shards :many
-- Take those of some shards that nobody owns or whose lease has run out; their epochs rise. A lease that the caller has
-- seen run out by its own clock is named by its end: the clock of the database was set back, and nobody has renewed it.
-- Index: shards_pkey
-- Guard: only free or expired rows are taken; the row lock waits for the last write of the old owner
-- Scatter: the table has one row per shard
-- Returns: shard int2, epoch int8, published_through timestamptz, swept_through timestamptz, tzdata text, now timestamptz
UPDATE betimes.shards
   SET owner = :node::uuid, epoch = epoch + 1,
       lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
  FROM unnest(:shards::smallint[], :stale::timestamptz[]) AS wanted (number, stale)
 WHERE shard = wanted.number
   AND (owner IS NULL OR lease_until < coalesce(:now::timestamptz, statement_timestamp()) OR lease_until = wanted.stale)
RETURNING shard, epoch, published_through, swept_through, tzdata,
          coalesce(:now::timestamptz, statement_timestamp()) AS now;

-- name: renew_shards :many
-- Prolong the leases of the shards we still own and move the cursors of idle ones. A row that somebody has locked is
-- not waited for: it is ours still, and not renewed.
-- Guard: owner and epoch; a shard that is missing from the answer is lost
-- Scatter: the table has one row per shard
-- Returns: shard int2, renewed bool, now timestamptz
WITH held AS MATERIALIZED (
    SELECT * FROM unnest(:shards::smallint[], :epochs::bigint[], :published::timestamptz[])
           AS held (shard, epoch, published_through)
), ours AS MATERIALIZED (
    SELECT shards.shard FROM held
      JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
), free AS MATERIALIZED (
    SELECT shards.shard, held.published_through FROM held
      JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
       FOR NO KEY UPDATE OF shards SKIP LOCKED
), renewed AS (
    UPDATE betimes.shards
       SET lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval,
           published_through = greatest(shards.published_through, free.published_through)
      FROM free WHERE shards.shard = free.shard
    RETURNING shards.shard
)
SELECT ours.shard, renewed.shard IS NOT NULL AS renewed, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM ours LEFT JOIN renewed ON renewed.shard = ours.shard;

-- name: release_shards :many
-- Give shards back at once instead of letting their leases run out.
-- Guard: owner and epoch
-- Scatter: the table has one row per shard
-- Returns: shard int2
UPDATE betimes.shards
   SET owner = NULL, lease_until = NULL
  FROM unnest(:shards::smallint[], :epochs::bigint[]) AS held (shard, epoch)
 WHERE shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
RETURNING shards.shard;

-- name: hold_shard :maybe
-- Prove inside a transaction that we still own the shard; a takeover waits until we are done.
-- Index: shards_pkey
-- Guard: owner, epoch and a lease that has not run out, under a lock that conflicts with acquire_shards
-- Returns: published_through timestamptz, now timestamptz
SELECT published_through, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
   AND lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   FOR SHARE;

-- name: hold_shards :many
-- The same for several shards, with how far each is published.
-- Guard: owner, epoch and a lease that has not run out, under a lock that conflicts with acquire_shards
-- Scatter: the table has one row per shard
-- Returns: shard int2, published_through timestamptz
SELECT shards.shard, shards.published_through
  FROM unnest(:shards::smallint[], :epochs::bigint[]) AS held (shard, epoch)
  JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
   AND shards.lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   FOR SHARE OF shards;

-- name: freeze_shard :one
-- Keep the publisher's cursor where it is until this transaction ends, whoever owns the shard.
-- Index: shards_pkey
-- Returns: published_through timestamptz, now timestamptz
SELECT published_through, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards WHERE shard = :shard::smallint FOR SHARE;

-- name: record_tzdata :many
-- Remember with which release of the zone rules the next fires of some shards were computed. A row that somebody has
-- locked is left for the next time.
-- Guard: owner and epoch
-- Scatter: the table has one row per shard
-- Returns: shard int2
WITH free AS MATERIALIZED (
    SELECT shards.shard FROM unnest(:shards::smallint[], :epochs::bigint[]) AS held (shard, epoch)
      JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
       FOR NO KEY UPDATE OF shards SKIP LOCKED
)
UPDATE betimes.shards SET tzdata = :tzdata::text FROM free WHERE shards.shard = free.shard
RETURNING shards.shard;

-- name: move_swept :maybe
-- Say that the sweeper has looked at every run due up to now.
-- Index: shards_pkey
-- Guard: owner and epoch
-- Returns: swept_through timestamptz
UPDATE betimes.shards SET swept_through = greatest(swept_through, :through::timestamptz)
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
RETURNING swept_through;

-- name: move_swept_together :many
-- Say the same of several shards in which nothing was found, as far as they are published. A row that somebody has
-- locked is left for the next sweep.
-- Guard: owner and epoch
-- Scatter: the table has one row per shard
-- Returns: shard int2, swept_through timestamptz
WITH free AS MATERIALIZED (
    SELECT shards.shard FROM unnest(:shards::smallint[], :epochs::bigint[]) AS held (shard, epoch)
      JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
       FOR NO KEY UPDATE OF shards SKIP LOCKED
)
UPDATE betimes.shards
   SET swept_through = greatest(swept_through, CASE WHEN published_through < :through::timestamptz THEN published_through
                                                    WHEN published_through IS NOT NULL THEN :through::timestamptz END)
  FROM free WHERE shards.shard = free.shard
RETURNING shards.shard, shards.swept_through;

-- name: count_shards :one
-- How many shards this cell was made with.
-- Returns: shards int2
SELECT shards FROM betimes.cluster;

-- name: take_shard :maybe
-- Prove inside a transaction that we own the shard, and keep everybody away who makes parcels in it.
-- Index: shards_pkey
-- Guard: owner, epoch and a lease that has not run out, under a lock that conflicts with every planner and verb
-- Returns: published_through timestamptz, now timestamptz
SELECT published_through, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
   AND lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   FOR NO KEY UPDATE;

-- name: take_shards :many
-- The same for several shards; what is no longer ours is missing.
-- Guard: owner, epoch and a lease that has not run out, under a lock that conflicts with every planner and verb
-- Scatter: the table has one row per shard
-- Returns: shard int2, published_through timestamptz, now timestamptz
SELECT shards.shard, shards.published_through, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM unnest(:shards::smallint[], :epochs::bigint[]) AS held (shard, epoch)
  JOIN betimes.shards ON shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
   AND shards.lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   FOR NO KEY UPDATE OF shards;

-- name: lock_shards :many
-- Lock the rows of some shards in ascending order, before their cursors are moved by several statements.
-- Index: shards_pkey
-- Scatter: the table has one row per shard
-- Returns: shard int2
SELECT shard FROM betimes.shards WHERE shard = ANY (:shards::smallint[]) ORDER BY shard FOR NO KEY UPDATE;

-- name: move_cursors :many
-- Move the cursors of shards before their parcels are made, in the same transaction.
-- Guard: owner, epoch and a lease that has not run out, and a cursor that is not yet there: a repeat moves nothing
-- Scatter: the table has one row per shard
-- Returns: shard int2, now timestamptz
UPDATE betimes.shards SET published_through = held.through
  FROM unnest(:shards::smallint[], :epochs::bigint[], :throughs::timestamptz[]) AS held (shard, epoch, through)
 WHERE shards.shard = held.shard AND shards.owner = :node::uuid AND shards.epoch = held.epoch
   AND shards.lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   AND (shards.published_through IS NULL OR shards.published_through < held.through)
RETURNING shards.shard, coalesce(:now::timestamptz, statement_timestamp()) AS now;
