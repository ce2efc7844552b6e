-- Which steps this database has taken.

-- name: create_schema :exec
-- Make the schema everything of ours lives in.
CREATE SCHEMA IF NOT EXISTS betimes;

-- name: create_migrations :exec
-- Make the table that remembers the steps.
CREATE TABLE IF NOT EXISTS betimes.migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('expand', 'contract')),
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: try_lock :one
-- Take the lock of migrators for this session, if it is free.
-- Returns: locked bool
SELECT pg_try_advisory_lock(:key::bigint) AS locked;

-- name: read_rights :one
-- Who we are, whether we may act as the service, may look into its schema, and may change it.
-- Returns: login text, serves bool, reads bool, owns bool
SELECT current_user::text AS login,
       EXISTS (SELECT FROM pg_roles WHERE rolname = 'betimes_system' AND pg_has_role(oid, 'MEMBER')) AS serves,
       coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = 'betimes'), true) AS reads,
       coalesce((SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'betimes'),
                has_database_privilege(current_database(), 'CREATE')) AS owns;

-- name: act_as_service :exec
-- Act as the service does, for this transaction.
SELECT set_config('role', 'betimes_system', true);

-- name: has_migrations :one
-- Tell whether this database was ever migrated.
-- Returns: present bool
SELECT to_regclass('betimes.migrations') IS NOT NULL AS present;

-- name: list_migrations :many
-- Every step taken, in order.
-- Returns: number int4, name text, kind text, checksum text
SELECT number, name, kind, checksum FROM betimes.migrations ORDER BY number;

-- name: record_migration :exec
-- Remember a step.
INSERT INTO betimes.migrations (number, name, kind, checksum)
VALUES (:number::integer, :name::text, :kind::text, :checksum::text);

-- name: bound_locks :exec
-- Let this transaction wait for no lock longer than it may.
SELECT set_config('lock_timeout', :milliseconds::text, true);

-- name: initialise_cluster :exec
-- Fix the number of shards of this cell, once and for ever.
INSERT INTO betimes.cluster (shards) VALUES (:shards::smallint) ON CONFLICT DO NOTHING;

-- name: initialise_shards :exec
-- Make a row for every shard.
INSERT INTO betimes.shards (shard)
SELECT number::smallint FROM betimes.cluster, generate_series(0, cluster.shards - 1) AS number
ON CONFLICT DO NOTHING;
