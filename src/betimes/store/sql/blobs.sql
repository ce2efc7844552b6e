-- Payloads and results over the inline limit, by reference.

-- name: insert_blob :maybe
-- Keep a blob; a repeated request changes nothing.
-- Guard: the primary key
-- Returns: id uuid
INSERT INTO betimes.blobs (shard, tenant_id, id, created_at, expires_at, size, media_type, content)
VALUES (:shard::smallint, :tenant::uuid, :id::uuid, :now::timestamptz, :expires_at::timestamptz, :size::bigint,
        :media_type::text, :content::bytea)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_blob :maybe
-- One blob that has not expired.
-- Returns: id uuid, created_at timestamptz, expires_at timestamptz, size int8, media_type text, content bytea
SELECT id, created_at, expires_at, size, media_type, content FROM betimes.blobs
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid
   AND (expires_at IS NULL OR expires_at > coalesce(:now::timestamptz, statement_timestamp()));
