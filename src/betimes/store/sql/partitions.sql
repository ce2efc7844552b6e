-- Days of the tables that grow by time.

-- name: ensure_partition :one
-- Make the partition of one day, moving what waited for it in the default partition.
-- Returns: made bool
SELECT betimes.ensure_partition(:parent::text, :day::date) AS made;

-- name: scan_partition :one
-- Look through the next blocks of an aged day for rows that are kept, and watch the day from the first call on; true when
-- the whole day has been looked through.
-- Returns: scanned bool
SELECT betimes.scan_partition(:parent::text, :day::date, :blocks::integer) AS scanned;

-- name: drop_partition :one
-- Drop the partition of one day and move on what is kept of it: how many rows moved, null when the day stays.
-- Guard: under the lock that lets nobody write to the day
-- Returns: moved int4
SELECT betimes.drop_partition(:parent::text, :day::date, :most::integer) AS moved;

-- name: list_partitions :many
-- The days that have a partition, by table; the default partitions are not listed.
-- Returns: parent text, day date, bytes int8
SELECT parent.relname::text AS parent,
       to_date(right(child.relname, 8), 'YYYYMMDD') AS day,
       pg_total_relation_size(child.oid) AS bytes
  FROM pg_inherits
  JOIN pg_class AS parent ON parent.oid = pg_inherits.inhparent
  JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
 WHERE parent.relnamespace = 'betimes'::regnamespace AND parent.relkind = 'p'
   AND child.relname ~ '_[0-9]{8}$'
 ORDER BY 1, 2;

-- name: survey :one
-- Count anew what tables hold that have outgrown their statistics.
-- Returns: surveyed int4
SELECT betimes.survey(:least_bytes::bigint) AS surveyed;
