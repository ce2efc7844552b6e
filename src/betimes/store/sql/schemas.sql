-- What handlers accept, as their workers declare it.

-- name: declare_schemas :exec
-- Keep what a worker declares; the newest declaration of a schema counts.
-- Guard: the primary key, in one order for everybody
INSERT INTO betimes.handler_schemas (tenant_id, handler, digest, schema, declared_at)
SELECT :tenant::uuid, told.handler, told.digest, told.schema, :now::timestamptz
  FROM unnest(:handlers::text[], :digests::text[], :schemas::text[]) AS told (handler, digest, schema)
 ORDER BY told.handler
ON CONFLICT (tenant_id, handler, digest) DO UPDATE SET declared_at = excluded.declared_at;

-- name: forget_schemas :exec
-- Drop schemas that nobody has declared for long and that newer ones have followed.
-- Index: handler_schemas_pkey
DELETE FROM betimes.handler_schemas AS old
 WHERE old.tenant_id = :tenant::uuid AND old.handler = ANY (:handlers::text[]) AND old.declared_at < :before::timestamptz
   AND EXISTS (
    SELECT FROM betimes.handler_schemas AS newer
     WHERE newer.tenant_id = old.tenant_id AND newer.handler = old.handler AND newer.declared_at > old.declared_at);

-- name: read_schemas :many
-- What the handlers of a tenant accept now: the newest schema of each, and those that live workers have.
-- Index: handler_schemas_pkey
-- Returns: handler text, digest text, schema text
SELECT told.handler, told.digest, told.schema
  FROM betimes.handler_schemas AS told
 WHERE told.tenant_id = :tenant::uuid
   AND (NOT EXISTS (
        SELECT FROM betimes.handler_schemas AS newer
         WHERE newer.tenant_id = told.tenant_id AND newer.handler = told.handler AND newer.declared_at > told.declared_at)
     OR EXISTS (
        SELECT FROM betimes.workers
         WHERE workers.tenant_id = told.tenant_id AND workers.heartbeat_at > :alive_after::timestamptz
           AND workers.details -> 'schemas' ->> told.handler = told.digest))
 LIMIT :most::integer;
