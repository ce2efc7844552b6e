-- Data keys of tenants, wrapped under a master key that is kept elsewhere.

-- name: adopt_master :one
-- Keep which master key is used first; whoever comes later learns whether it has the same.
-- Returns: master_check bytea
UPDATE betimes.cluster SET master_check = coalesce(master_check, :master::bytea) WHERE one
RETURNING master_check;

-- name: follow_master :exec
-- From now on another master key is the one to have.
UPDATE betimes.cluster SET master_check = :master::bytea WHERE one;

-- name: read_data_keys :many
-- The data keys of a tenant, newest first.
-- Index: data_keys_pkey
-- Returns: version int4, master bytea, wrapped bytea, created_at timestamptz, inline bool
SELECT version, master, wrapped, created_at, inline FROM betimes.data_keys
 WHERE tenant_id = :tenant::uuid ORDER BY version DESC;

-- name: insert_data_key :maybe
-- Keep a new data key; of two at once the first stays.
-- Guard: the primary key
-- Returns: version int4
INSERT INTO betimes.data_keys (tenant_id, version, master, wrapped, created_at)
VALUES (:tenant::uuid, :version::integer, :master::bytea, :wrapped::bytea, :now::timestamptz)
ON CONFLICT DO NOTHING
RETURNING version;

-- name: mark_inline_key :exec
-- Note that a data key seals what lies in rows of runs and jobs: it is never forgotten before its tenant.
-- Index: data_keys_pkey
UPDATE betimes.data_keys SET inline = true WHERE tenant_id = :tenant::uuid AND version = :version::integer AND NOT inline;

-- name: keys_under_other_masters :many
-- Some data keys that are not wrapped under a master key.
-- Returns: tenant_id uuid, version int4, master bytea, wrapped bytea, created_at timestamptz, inline bool
SELECT tenant_id, version, master, wrapped, created_at, inline FROM betimes.data_keys
 WHERE master <> :master::bytea ORDER BY tenant_id, version LIMIT :most::integer;

-- name: rewrap_data_key :maybe
-- Keep a data key under another master key.
-- Guard: the master key it was read under
-- Returns: version int4
UPDATE betimes.data_keys SET master = :master::bytea, wrapped = :wrapped::bytea
 WHERE tenant_id = :tenant::uuid AND version = :version::integer AND master = :was::bytea
RETURNING version;

-- name: aged_data_keys :many
-- Tenants whose newest data key is older than it should be.
-- Returns: tenant_id uuid
SELECT tenant_id FROM betimes.data_keys GROUP BY tenant_id
HAVING max(created_at) < :before::timestamptz ORDER BY tenant_id LIMIT :most::integer;

-- name: tenants_with_old_keys :many
-- Tenants that have more than one data key.
-- Returns: tenant_id uuid
SELECT tenant_id FROM betimes.data_keys WHERE tenant_id > :after::uuid
 GROUP BY tenant_id HAVING count(*) > 1 ORDER BY tenant_id LIMIT :most::integer;

-- name: drop_unused_data_keys :many
-- Forget data keys that nothing is sealed under any more and that have long been replaced.
-- Scatter: a tenant's blobs lie in every shard
-- Guard: a newer key must be older than any transaction that may still use this one
-- Returns: version int4
DELETE FROM betimes.data_keys AS old
 WHERE old.tenant_id = :tenant::uuid AND NOT old.inline
   AND EXISTS (SELECT FROM betimes.data_keys AS newer
                WHERE newer.tenant_id = old.tenant_id AND newer.version > old.version AND newer.created_at < :before::timestamptz)
   AND NOT EXISTS (SELECT FROM betimes.secrets
                    WHERE secrets.tenant_id = old.tenant_id AND secrets.key_version = old.version)
   AND NOT EXISTS (SELECT FROM betimes.blobs
                    WHERE blobs.tenant_id = old.tenant_id AND blobs.key_version = old.version)
   AND NOT EXISTS (SELECT FROM betimes.endpoints
                    WHERE endpoints.tenant_id = old.tenant_id AND endpoints.secret IS NOT NULL
                      AND endpoints.key_version = old.version)
RETURNING old.version;
