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
SELECT pg_notify(:channel::text, :payload::text);
