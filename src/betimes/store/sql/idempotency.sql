-- Requests that may come twice. The row and the effect it guards commit together.

-- name: claim_key :many
-- Take a key for the days given, unless it was taken before: then the row that has it comes back.
-- Index: idempotency_pkey
-- Guard: the primary key; whoever claims the same key meanwhile waits here until we have ended
-- Returns: fresh bool, fingerprint bytea, status int2, headers text, body bytea
WITH seen AS MATERIALIZED (
    SELECT fingerprint, status, headers, body FROM betimes.idempotency
     WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND key = :key::text AND expires_at > :now::timestamptz
     ORDER BY created_at LIMIT 1
), made AS (
    INSERT INTO betimes.idempotency (shard, tenant_id, key, day, fingerprint, created_at, expires_at)
    SELECT :shard::smallint, :tenant::uuid, :key::text, wanted.day, :fingerprint::bytea, :now::timestamptz,
           :expires_at::timestamptz
      FROM unnest(:days::date[]) AS wanted (day)
     WHERE NOT EXISTS (SELECT FROM seen)
     ORDER BY wanted.day
    ON CONFLICT DO NOTHING
    RETURNING day
)
SELECT false AS fresh, fingerprint, status, headers::text AS headers, body FROM seen
UNION ALL
SELECT true, NULL, NULL, NULL, NULL FROM made;

-- name: read_answer :many
-- What a request with this key was answered.
-- Index: idempotency_pkey
-- Returns: fingerprint bytea, status int2, headers text, body bytea
SELECT fingerprint, status, headers::text AS headers, body FROM betimes.idempotency
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND key = :key::text AND expires_at > :now::timestamptz
 ORDER BY created_at LIMIT 1;

-- name: answer_key :exec
-- Keep the answer of the request that holds a key. The caller has claimed it in this transaction.
-- Index: idempotency_pkey
UPDATE betimes.idempotency
   SET status = :status::smallint, headers = :headers::text::jsonb, body = :body::bytea
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND key = :key::text AND day = ANY (:days::date[]);

-- name: release_key :many
-- Give back what this transaction has claimed of a key, if somebody else answered it meanwhile.
-- Index: idempotency_pkey
-- Guard: only a claim of our own has no answer yet; those of others are not visible before they have one
-- Returns: day date
DELETE FROM betimes.idempotency AS mine
 WHERE mine.shard = :shard::smallint AND mine.tenant_id = :tenant::uuid AND mine.key = :key::text
   AND mine.day = ANY (:days::date[]) AND mine.status IS NULL
   AND EXISTS (SELECT FROM betimes.idempotency AS other
                WHERE other.shard = :shard::smallint AND other.tenant_id = :tenant::uuid AND other.key = :key::text
                  AND other.status IS NOT NULL AND other.expires_at > :now::timestamptz)
RETURNING mine.day;

-- name: insert_answered_keys :many
-- Keep keys together with their answers, unless one was taken before: those that were free come back.
-- Scatter: every key lives in the shard of its own digest
-- Index: idempotency_pkey
-- Guard: the primary key; whoever claims the same key meanwhile waits here until we have ended
-- Returns: key text
INSERT INTO betimes.idempotency (shard, tenant_id, key, day, fingerprint, status, headers, body, created_at, expires_at)
SELECT fresh.shard, :tenant::uuid, fresh.key, wanted.day, decode(fresh.fingerprint, 'hex'), fresh.status, fresh.headers,
       fresh.body, :now::timestamptz, fresh.expires_at
  FROM ROWS FROM (
        jsonb_to_recordset(:fresh_claims::text::jsonb)
            AS (shard smallint, key text, fingerprint text, status smallint, headers jsonb, expires_at timestamptz),
        unnest(:bodies::bytea[]))
       AS fresh (shard, key, fingerprint, status, headers, expires_at, body)
 CROSS JOIN unnest(:days::date[]) AS wanted (day)
 WHERE NOT EXISTS (
    SELECT FROM betimes.idempotency AS seen
     WHERE seen.shard = fresh.shard AND seen.tenant_id = :tenant::uuid AND seen.key = fresh.key
       AND seen.expires_at > :now::timestamptz
     OFFSET 0)  -- asked key by key: as a join it may be planned as a walk over all keys of a day
 ORDER BY fresh.shard, fresh.key, wanted.day
ON CONFLICT DO NOTHING
RETURNING key;
