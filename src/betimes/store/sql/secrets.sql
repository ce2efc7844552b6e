-- Secrets of tenants: sealed values in versions. What they are is known to the room above only.

-- name: list_secrets :many
-- Names of secrets in their order, each with its newest version, page by page.
-- Index: secrets_pkey
-- Returns: name text, version int4, versions int4, created_at timestamptz, updated_at timestamptz, created_by text, origins _text
SELECT name, max(version) AS version, count(*)::integer AS versions, min(created_at) AS created_at, max(created_at) AS updated_at,
       (array_agg(created_by ORDER BY version DESC))[1] AS created_by,
       (SELECT newest.origins FROM betimes.secrets AS newest
         WHERE newest.tenant_id = :tenant::uuid AND newest.name = secrets.name ORDER BY newest.version DESC LIMIT 1) AS origins
  FROM betimes.secrets WHERE tenant_id = :tenant::uuid AND name > :after::text
 GROUP BY name ORDER BY name LIMIT :most::integer;

-- name: read_secret :many
-- Every version of one secret, newest first.
-- Index: secrets_pkey
-- Returns: name text, version int4, key_version int4, created_at timestamptz, created_by text, sealed bytea, origins _text
SELECT name, version, key_version, created_at, created_by, sealed, origins FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND name = :name::text ORDER BY version DESC;

-- name: read_secrets :many
-- Every version of some secrets, newest first.
-- Returns: name text, version int4, key_version int4, created_at timestamptz, created_by text, sealed bytea, origins _text
SELECT name, version, key_version, created_at, created_by, sealed, origins FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND name = ANY (:names::text[]) ORDER BY name, version DESC;

-- name: count_secrets :one
-- How many secrets a tenant has.
-- Returns: secrets int8
SELECT count(DISTINCT name) AS secrets FROM betimes.secrets WHERE tenant_id = :tenant::uuid;

-- name: insert_secret :maybe
-- Keep a new version of a secret; of two at once the first stays.
-- Guard: the primary key
-- Returns: version int4
INSERT INTO betimes.secrets (tenant_id, name, version, key_version, created_at, created_by, sealed, origins)
VALUES (:tenant::uuid, :name::text, :version::integer, :key_version::integer, :now::timestamptz, :created_by::text, :sealed::bytea,
        :origins::text[])
ON CONFLICT DO NOTHING
RETURNING version;

-- name: bind_secret :many
-- Say where a secret may be sent, for all its versions.
-- Returns: version int4
UPDATE betimes.secrets SET origins = :origins::text[]
 WHERE tenant_id = :tenant::uuid AND name = :name::text
RETURNING version;

-- name: read_bindings :many
-- Where some secrets may be sent.
-- Returns: name text, origins _text
SELECT DISTINCT ON (name) name, origins FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND name = ANY (:names::text[]) ORDER BY name, version DESC;

-- name: forget_old_versions :many
-- Forget the versions of a secret before one.
-- Returns: version int4
DELETE FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND version < :before::integer
RETURNING version;

-- name: delete_secret :many
-- Forget a secret, or one version of it.
-- Returns: version int4
DELETE FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND (:version::integer IS NULL OR version = :version::integer)
RETURNING version;

-- name: secrets_under_old_keys :many
-- Some secrets that are not sealed under the newest data key of their tenant.
-- Returns: name text, version int4, key_version int4, created_at timestamptz, created_by text, sealed bytea, origins _text
SELECT name, version, key_version, created_at, created_by, sealed, origins FROM betimes.secrets
 WHERE tenant_id = :tenant::uuid AND key_version < :newest::integer ORDER BY name, version LIMIT :most::integer;

-- name: reseal_secret :maybe
-- Keep a secret under a newer data key.
-- Guard: the key it was sealed under
-- Returns: version int4
UPDATE betimes.secrets SET key_version = :key_version::integer, sealed = :sealed::bytea
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND version = :version::integer AND key_version = :was::integer
RETURNING version;
