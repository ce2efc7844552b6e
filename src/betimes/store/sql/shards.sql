-- Ownership of slices of the job space. Tiny tables: statements over all owned shards are allowed.

-- name: read_shards :many
-- Every shard, its owner and whether the lease has run out by the database clock.
-- Scatter: the table has one row per shard
-- Returns: shard int2, owner uuid, epoch int8, expired bool, now timestamptz
SELECT shard, owner, epoch,
       coalesce(lease_until < coalesce(:now::timestamptz, statement_timestamp()), true) AS expired,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards ORDER BY shard;

-- name: acquire_shards :many
-- Take those of some shards that nobody owns or whose lease has run out; their epochs rise.
-- Index: shards_pkey
-- Guard: only free or expired rows are taken; the row lock waits for the last write of the old owner
-- Scatter: the table has one row per shard
-- Returns: shard int2, epoch int8, published_through timestamptz, swept_through timestamptz, tzdata text, now timestamptz
UPDATE betimes.shards
   SET owner = :node::uuid, epoch = epoch + 1,
       lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
 WHERE shard = ANY (:shards::smallint[])
   AND (owner IS NULL OR lease_until < coalesce(:now::timestamptz, statement_timestamp()))
RETURNING shard, epoch, published_through, swept_through, tzdata,
          coalesce(:now::timestamptz, statement_timestamp()) AS now;

-- name: renew_shards :many
-- Prolong the leases of the shards we still own and move the cursors of idle ones.
-- Guard: owner and epoch; a shard that is missing from the answer is lost
-- Scatter: the table has one row per shard
-- Returns: shard int2, now timestamptz
UPDATE betimes.shards
   SET lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval,
       published_through = greatest(shards.published_through, held.published_through)
  FROM unnest(:shards::smallint[], :epochs::bigint[], :published::timestamptz[])
       AS held (shard, epoch, published_through)
 WHERE shards.shard = held.shard AND shards.epoch = held.epoch AND shards.owner = :node::uuid
RETURNING shards.shard, coalesce(:now::timestamptz, statement_timestamp()) AS now;

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

-- name: freeze_shard :one
-- Keep the publisher's cursor where it is until this transaction ends, whoever owns the shard.
-- Index: shards_pkey
-- Returns: published_through timestamptz, now timestamptz
SELECT published_through, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM betimes.shards WHERE shard = :shard::smallint FOR SHARE;

-- name: move_published :maybe
-- Say that every run due up to now has its parcel; never backwards.
-- Index: shards_pkey
-- Guard: owner and epoch; no row means fenced out
-- Returns: published_through timestamptz
UPDATE betimes.shards
   SET published_through = greatest(published_through, :through::timestamptz)
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
RETURNING published_through;

-- name: record_tzdata :maybe
-- Remember with which release of the zone rules the next fires of a shard were computed.
-- Index: shards_pkey
-- Guard: owner and epoch
-- Returns: shard int2
UPDATE betimes.shards SET tzdata = :tzdata::text
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
RETURNING shard;

-- name: move_swept :maybe
-- Say that the sweeper has looked at every run due up to now.
-- Index: shards_pkey
-- Guard: owner and epoch
-- Returns: swept_through timestamptz
UPDATE betimes.shards SET swept_through = greatest(swept_through, :through::timestamptz)
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
RETURNING swept_through;

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

-- name: move_cursor :maybe
-- Move the cursor of a shard before its parcels are made, in the same transaction.
-- Index: shards_pkey
-- Guard: owner, epoch and a lease that has not run out, and a cursor that is not yet there: a repeat moves nothing
-- Returns: now timestamptz
UPDATE betimes.shards SET published_through = :through::timestamptz
 WHERE shard = :shard::smallint AND owner = :node::uuid AND epoch = :epoch::bigint
   AND lease_until >= coalesce(:now::timestamptz, statement_timestamp())
   AND (published_through IS NULL OR published_through < :through::timestamptz)
RETURNING coalesce(:now::timestamptz, statement_timestamp()) AS now;
