-- What creations that share a transaction leave behind, whatever they create.

-- name: keep_group :maybe
-- Keep the keys of a group with their answers, then add its acts to one chain, with their events: one message for all three.
-- Nothing comes back when somebody began the chain at the same moment; fewer keys than were sent when one was taken before.
-- Scatter: every key lives in the shard of its own digest
-- Index: idempotency_pkey, audit_heads_pkey
-- Guard: the primary key of the keys, whoever claims the same one meanwhile waits here; then the head's row lock
-- Returns: keys int8
WITH RECURSIVE claimed AS (
    INSERT INTO betimes.idempotency (shard, tenant_id, key, day, fingerprint, status, headers, body, created_at, expires_at)
    SELECT fresh.shard, :tenant::uuid, fresh.key, wanted.day, decode(fresh.fingerprint, 'hex'), fresh.status, fresh.headers,
           fresh.body, :claimed_at::timestamptz, fresh.expires_at
      FROM ROWS FROM (
            jsonb_to_recordset(:fresh_claims::text::jsonb)
                AS (shard smallint, key text, fingerprint text, status smallint, headers jsonb, expires_at timestamptz),
            unnest(:bodies::bytea[]))
           AS fresh (shard, key, fingerprint, status, headers, expires_at, body)
     CROSS JOIN unnest(:days::date[]) AS wanted (day)
     WHERE NOT EXISTS (
        SELECT FROM betimes.idempotency AS seen
         WHERE seen.shard = fresh.shard AND seen.tenant_id = :tenant::uuid AND seen.key = fresh.key
           AND seen.expires_at > :claimed_at::timestamptz
         OFFSET 0)  -- asked key by key: as a join it may be planned as a walk over all keys of a day
     ORDER BY fresh.shard, fresh.key, wanted.day
    ON CONFLICT DO NOTHING
    RETURNING 1
), counted AS MATERIALIZED (
    SELECT count(*) AS keys FROM claimed
), head AS MATERIALIZED (
    -- After the keys: whoever acts alone takes them in this order, too.
    SELECT heads.number, heads.digest FROM counted CROSS JOIN betimes.audit_heads AS heads
     WHERE heads.shard = :shard::smallint AND heads.tenant_id = :tenant::uuid
       FOR UPDATE OF heads
), begun AS MATERIALIZED (
    SELECT coalesce((SELECT number FROM head), 0) AS number, coalesce((SELECT digest FROM head), ''::bytea) AS digest
), chain AS (
    SELECT 0 AS place, begun.digest FROM begun
    UNION ALL
    SELECT chain.place + 1, sha256(chain.digest || (:contents::bytea[])[chain.place + 1])
      FROM chain WHERE chain.place < cardinality(:contents::bytea[])
), linked AS MATERIALIZED (
    SELECT array_agg(chain.digest ORDER BY chain.place) AS digests FROM chain WHERE chain.place > 0
), acts AS MATERIALIZED (
    SELECT act.*, begun.number + act.place AS number, linked.digests[act.place] AS digest
      FROM begun CROSS JOIN linked CROSS JOIN ROWS FROM (
            jsonb_to_recordset(:grouped_acts::text::jsonb)
                AS (actor jsonb, action text, resource text, request text, before jsonb, after jsonb, event_id uuid, event text,
                    body jsonb))
           WITH ORDINALITY
           AS act (actor, action, resource, request, before, after, event_id, event, body, place)
), written AS (
    INSERT INTO betimes.audit (shard, tenant_id, number, at, actor, action, resource, request_id, before, after, digest)
    SELECT :shard::smallint, :tenant::uuid, act.number, :now::timestamptz, act.actor, act.action, act.resource, act.request,
           act.before, act.after, act.digest
      FROM acts AS act
    ON CONFLICT DO NOTHING  -- only where two begin a chain: the head below tells the second one
), told AS (
    INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
    SELECT :shard::smallint, act.event_id, :tenant::uuid, act.event, act.resource, act.body, :now::timestamptz
      FROM acts AS act WHERE act.event IS NOT NULL
)
INSERT INTO betimes.audit_heads AS heads (shard, tenant_id, number, digest)
SELECT :shard::smallint, :tenant::uuid, act.number, act.digest FROM acts AS act ORDER BY act.number DESC LIMIT 1
ON CONFLICT (shard, tenant_id) DO UPDATE
   SET number = excluded.number, digest = excluded.digest
 WHERE heads.number = (SELECT number FROM begun)
RETURNING (SELECT keys FROM counted) AS keys;
