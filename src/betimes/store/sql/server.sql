-- Facts about the server itself.

-- name: read_durability :many
-- The settings on which acknowledged = durable depends, as this session sees them.
-- Returns: name text, setting text
SELECT name, setting FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit');

-- name: read_clock :one
-- The database clock, which alone decides what is due.
-- Returns: now timestamptz
SELECT clock_timestamp() AS now;

-- name: send_hint :exec
-- Tell whoever listens that it may be worth looking now; a hint, never truth.
-- A notification has a commit record of its own; that one need not be on disk before anybody hears it.
SELECT pg_notify(:channel::text, :payload::text), set_config('synchronous_commit', 'off', true);

-- name: read_oldest_snapshot :one
-- How long the oldest transaction has kept vacuum from removing what it might still see.
-- Returns: seconds float8
SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::double precision AS seconds
  FROM pg_stat_activity
 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database();

-- name: read_table_health :many
-- Updates, HOT updates and dead rows of our tables, partitions added up under their parent.
-- Returns: name text, updates int8, hot_updates int8, dead int8, live int8
SELECT coalesce(parent.relname, stat.relname)::text AS name, sum(stat.n_tup_upd)::bigint AS updates,
       sum(stat.n_tup_hot_upd)::bigint AS hot_updates, sum(stat.n_dead_tup)::bigint AS dead,
       sum(stat.n_live_tup)::bigint AS live
  FROM pg_stat_user_tables AS stat
  LEFT JOIN pg_inherits ON pg_inherits.inhrelid = stat.relid
  LEFT JOIN pg_class AS parent ON parent.oid = pg_inherits.inhparent
 WHERE stat.schemaname = 'betimes'
 GROUP BY 1 ORDER BY 1;
