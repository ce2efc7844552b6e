-- Long work with progress: who asked for it, how far it is, and what became of it.

-- name: insert_operation :maybe
-- Keep an operation that somebody asked for; one with the same id stays as it is.
-- Guard: the primary key
-- Returns: id uuid
INSERT INTO betimes.operations (shard, tenant_id, id, kind, total, request, due_at, created_at, expires_at, created_by)
VALUES (:shard::smallint, :tenant::uuid, :id::uuid, :kind::text, :total::bigint, :request::text::jsonb, :due_at::timestamptz,
        :now::timestamptz, :expires_at::timestamptz, :created_by::text)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_operation :maybe
-- One operation of a tenant.
-- Returns: id uuid, tenant_id uuid, kind text, state int2, done int8, total int8, request text, result text, error text, cursor text, worked_by uuid, due_at timestamptz, created_at timestamptz, finished_at timestamptz, expires_at timestamptz, created_by text
SELECT id, tenant_id, kind, state, done, total, request::text AS request, result::text AS result, error::text AS error, cursor,
       worked_by, due_at, created_at, finished_at, expires_at, created_by
  FROM betimes.operations WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid;

-- name: list_operations :many
-- Operations of a tenant, the newest first, page by page; without what they were asked to do.
-- Scatter: a tenant's operations lie in every shard
-- Index: operations_tenant_idx
-- Returns: id uuid, tenant_id uuid, kind text, state int2, done int8, total int8, request text, result text, error text, cursor text, worked_by uuid, due_at timestamptz, created_at timestamptz, finished_at timestamptz, expires_at timestamptz, created_by text
SELECT id, tenant_id, kind, state, done, total, NULL::text AS request, result::text AS result, error::text AS error, cursor,
       worked_by, due_at, created_at, finished_at, expires_at, created_by
  FROM betimes.operations
 WHERE tenant_id = :tenant::uuid AND id < :before_id::uuid
   AND (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:kinds::text[] IS NULL OR operations.kind = ANY (:kinds::text[]))
 ORDER BY id DESC LIMIT :most::integer;

-- name: read_operations_ahead :one
-- How many seconds it takes until an operation is due; none or less when one is, null when there is none at all.
-- Scatter: any shard may have work
-- Index: operations_due_idx
-- Returns: due_in float8
SELECT (SELECT extract(epoch FROM due_at - coalesce(:now::timestamptz, statement_timestamp()))::float8
          FROM betimes.operations WHERE state < 2 ORDER BY due_at LIMIT 1) AS due_in;

-- name: find_due_operations :many
-- The operations that have been due for longest and that nobody works on.
-- Scatter: any shard may have work
-- Index: operations_due_idx
-- Returns: shard int2, tenant_id uuid, id uuid
SELECT shard, tenant_id, id FROM betimes.operations
 WHERE state < 2 AND due_at <= coalesce(:now::timestamptz, statement_timestamp())
   AND (worked_until IS NULL OR worked_until <= coalesce(:now::timestamptz, statement_timestamp()))
 ORDER BY due_at LIMIT :most::integer;

-- name: claim_operation :maybe
-- Take an operation unless somebody else has meanwhile.
-- Guard: only while nobody works on it; `worked_by` is new with every claim and guards every later write
-- Returns: id uuid, tenant_id uuid, kind text, state int2, done int8, total int8, request text, result text, error text, cursor text, worked_by uuid, due_at timestamptz, created_at timestamptz, finished_at timestamptz, expires_at timestamptz, created_by text
UPDATE betimes.operations
   SET state = 1, worked_by = :claim::uuid,
       worked_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND state < 2
   AND (worked_until IS NULL OR worked_until <= coalesce(:now::timestamptz, statement_timestamp()))
RETURNING operations.id, operations.tenant_id, operations.kind, operations.state, operations.done, operations.total,
          operations.request::text AS request, operations.result::text AS result, operations.error::text AS error,
          operations.cursor, operations.worked_by, operations.due_at, operations.created_at, operations.finished_at,
          operations.expires_at, operations.created_by;

-- name: advance_operation :maybe
-- Note how far an operation is, in the transaction that brings it there.
-- Guard: the claim, the place it goes on from, and that nobody has cancelled it
-- Returns: id uuid
UPDATE betimes.operations
   SET done = :done::bigint, cursor = :cursor::text, result = :result::text::jsonb,
       worked_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND worked_by = :claim::uuid AND state = 1
   AND done = :was::bigint
RETURNING id;

-- name: release_operation :maybe
-- Let go of an operation that goes on later.
-- Guard: the claim
-- Returns: id uuid
UPDATE betimes.operations SET worked_by = NULL, worked_until = NULL, due_at = :due_at::timestamptz
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND worked_by = :claim::uuid AND state = 1
RETURNING id;

-- name: settle_operation :maybe
-- Write down how an operation ended.
-- Guard: the claim, and that it has not ended
-- Returns: id uuid
UPDATE betimes.operations
   SET state = :state::smallint, result = :result::text::jsonb, error = :error::text::jsonb, worked_by = NULL,
       worked_until = NULL, finished_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND worked_by = :claim::uuid AND state = 1
RETURNING id;

-- name: cancel_operation :maybe
-- Stop an operation where it is.
-- Guard: only one that has not ended
-- Returns: id uuid
UPDATE betimes.operations
   SET state = 4, worked_by = NULL, worked_until = NULL, finished_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = :id::uuid AND state < 2
RETURNING id;
