-- Payloads and results over the inline limit, by reference, sealed.

-- name: insert_blob :maybe
-- Keep a blob; a repeated request changes nothing.
-- Guard: the primary key
-- Returns: id uuid
INSERT INTO betimes.blobs (shard, tenant_id, id, created_at, expires_at, size, media_type, retention, key_version, location, content)
VALUES (:shard::smallint, :tenant::uuid, :id::uuid, :now::timestamptz, :expires_at::timestamptz, :size::bigint,
        :media_type::text, :retention::text, :key_version::integer, :location::text, :content::bytea)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_blob :maybe
-- One blob that has not expired, or that something needs which has not ended.
-- Returns: id uuid, created_at timestamptz, expires_at timestamptz, size int8, media_type text, retention text, key_version int4, location text, content bytea
SELECT id, created_at, expires_at, size, media_type, retention, key_version, location, content FROM betimes.blobs
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid
   AND (expires_at IS NULL OR expires_at > coalesce(:now::timestamptz, statement_timestamp())
        OR betimes.is_referenced(tenant_id, id));

-- name: find_blobs :many
-- Those of the given blobs that have not expired.
-- Scatter: blobs lie in the shards of their own ids, one probe each
-- Returns: id uuid
SELECT blobs.id
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  JOIN betimes.blobs ON blobs.shard = wanted.shard AND blobs.tenant_id = :tenant::uuid AND blobs.id = wanted.id
 WHERE blobs.expires_at IS NULL OR blobs.expires_at > coalesce(:now::timestamptz, statement_timestamp());

-- name: expired_objects :many
-- Blobs outside the database whose time is up, but for what something needs that has not ended.
-- Index: blobs_located_idx
-- Returns: tenant_id uuid, id uuid, location text
SELECT tenant_id, id, location FROM betimes.blobs
 WHERE shard = :shard::smallint AND location IS NOT NULL
   AND expires_at <= coalesce(:now::timestamptz, statement_timestamp())
   AND NOT betimes.is_referenced(tenant_id, id)
 ORDER BY expires_at LIMIT :most::integer;

-- name: objects_of_tenant :many
-- Some blobs of a tenant that lie outside the database.
-- Scatter: one probe of an index per shard
-- Returns: tenant_id uuid, id uuid, location text
SELECT few.tenant_id, few.id, few.location FROM betimes.shards CROSS JOIN LATERAL (
    SELECT tenant_id, id, location FROM betimes.blobs
     WHERE blobs.shard = shards.shard AND tenant_id = :tenant::uuid AND location IS NOT NULL LIMIT :most::integer) AS few
 LIMIT :most::integer;

-- name: delete_blob :maybe
-- Forget a blob whose content is gone.
-- Returns: id uuid
DELETE FROM betimes.blobs WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid RETURNING id;

-- name: blobs_under_old_keys :many
-- Some blobs of a tenant that are not sealed under its newest data key.
-- Scatter: one probe of an index per shard
-- Returns: id uuid, created_at timestamptz, expires_at timestamptz, size int8, media_type text, retention text, key_version int4, location text, content bytea
SELECT few.id, few.created_at, few.expires_at, few.size, few.media_type, few.retention, few.key_version, few.location, few.content
  FROM betimes.shards CROSS JOIN LATERAL (
    SELECT id, created_at, expires_at, size, media_type, retention, key_version, location, content FROM betimes.blobs
     WHERE blobs.shard = shards.shard AND tenant_id = :tenant::uuid AND key_version < :newest::integer LIMIT :most::integer) AS few
 LIMIT :most::integer;

-- name: reseal_blob :maybe
-- Keep a blob under a newer data key.
-- Guard: the key it was sealed under
-- Returns: id uuid
UPDATE betimes.blobs SET key_version = :key_version::integer, location = :location::text, content = :content::bytea
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND key_version = :was::integer
RETURNING id;
