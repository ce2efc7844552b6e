-- Who did what: one row per act, in the act's own transaction, chained by digests.

-- name: append_audit :one
-- Add an act to the chain of its tenant in its shard, and tell it as an event if it has a name for that.
-- Index: audit_heads_pkey
-- Guard: the head's row lock; the digest covers every act before
-- Returns: number int8
WITH head AS (
    INSERT INTO betimes.audit_heads AS heads (shard, tenant_id, number, digest)
    VALUES (:shard::smallint, :tenant::uuid, 1, sha256(:content::bytea))
    ON CONFLICT (shard, tenant_id) DO UPDATE
       SET number = heads.number + 1, digest = sha256(heads.digest || :content::bytea)
    RETURNING number, digest
), told AS (
    INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
    SELECT :shard::smallint, :event_id::uuid, :tenant::uuid, :event::text, :resource::text, :event_body::text::jsonb,
           :now::timestamptz
     WHERE :event::text IS NOT NULL
)
INSERT INTO betimes.audit (shard, tenant_id, number, at, actor, action, resource, request_id, before, after, digest)
SELECT :shard::smallint, :tenant::uuid, head.number, :now::timestamptz, :actor::text::jsonb, :action::text, :resource::text,
       :request::text, :before::text::jsonb, :after::text::jsonb, head.digest
  FROM head
RETURNING number;

-- name: list_audit :many
-- Acts of a tenant in the order of their times, page by page, newest first.
-- Scatter: a tenant's chains lie in every shard
-- Index: audit_tenant_idx
-- Returns: shard int2, number int8, at timestamptz, actor text, action text, resource text, request_id text, before text, after text, digest bytea
SELECT shard, number, at, actor::text AS actor, action, resource, request_id, before::text AS before, after::text AS after, digest
  FROM betimes.audit
 WHERE tenant_id = :tenant::uuid
   AND (at, shard, number) < (:before_at::timestamptz, :before_shard::smallint, :before_number::bigint)
   AND at >= :since::timestamptz
   AND (:action::text IS NULL OR action = :action::text)
   AND (:resource::text IS NULL OR resource = :resource::text)
   AND (:actor::text IS NULL OR actor ->> 'id' = :actor::text)
 ORDER BY at DESC, shard DESC, number DESC LIMIT :most::integer;

-- name: read_audit :maybe
-- One act.
-- Returns: shard int2, number int8, at timestamptz, actor text, action text, resource text, request_id text, before text, after text, digest bytea
SELECT shard, number, at, actor::text AS actor, action, resource, request_id, before::text AS before, after::text AS after, digest
  FROM betimes.audit WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND number = :number::bigint;

-- name: read_chain :many
-- One chain from a number on, in order, for checking.
-- Index: audit_pkey
-- Returns: shard int2, number int8, at timestamptz, actor text, action text, resource text, request_id text, before text, after text, digest bytea
SELECT shard, number, at, actor::text AS actor, action, resource, request_id, before::text AS before, after::text AS after, digest
  FROM betimes.audit
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND number > :after_number::bigint
 ORDER BY number LIMIT :most::integer;

-- name: read_heads :many
-- The ends of a tenant's chains.
-- Scatter: one small row per shard
-- Returns: shard int2, number int8, digest bytea
SELECT shard, number, digest FROM betimes.audit_heads WHERE tenant_id = :tenant::uuid ORDER BY shard;

-- name: list_events :many
-- Events of a tenant in the order of their ids, page by page.
-- Scatter: a tenant's events lie in every shard
-- Index: outbox_tenant_idx
-- Returns: id uuid, type text, subject text, body text, created_at timestamptz
SELECT id, type, subject, body::text AS body, created_at FROM betimes.outbox
 WHERE tenant_id = :tenant::uuid AND id > :low::uuid AND id < :high::uuid
   AND (:types::text[] IS NULL OR type = ANY (:types::text[]))
 ORDER BY id LIMIT :most::integer;

-- name: lock_head :one
-- Hold the end of a chain until the transaction ends; a chain that is new begins here.
-- Index: audit_heads_pkey
-- Guard: the row lock
-- Returns: number int8, digest bytea
INSERT INTO betimes.audit_heads AS heads (shard, tenant_id, number, digest)
VALUES (:shard::smallint, :tenant::uuid, 0, ''::bytea)
ON CONFLICT (shard, tenant_id) DO UPDATE SET number = heads.number
RETURNING number, digest;

-- name: append_many :exec
-- Add acts to a chain whose end the caller holds, with their events.
-- Index: audit_heads_pkey
-- Guard: the caller holds the head
WITH acts AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(:fresh_acts::text::jsonb)
        AS act (number bigint, actor jsonb, action text, resource text, request text, before jsonb, after jsonb, digest text,
                event_id uuid, event text, body jsonb)
), written AS (
    INSERT INTO betimes.audit (shard, tenant_id, number, at, actor, action, resource, request_id, before, after, digest)
    SELECT :shard::smallint, :tenant::uuid, act.number, :now::timestamptz, act.actor, act.action, act.resource, act.request,
           act.before, act.after, decode(act.digest, 'hex')
      FROM acts AS act
), told AS (
    INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
    SELECT :shard::smallint, act.event_id, :tenant::uuid, act.event, act.resource, act.body, :now::timestamptz
      FROM acts AS act WHERE act.event IS NOT NULL
)
UPDATE betimes.audit_heads SET number = :last::bigint, digest = :head::bytea
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid;

-- name: find_act :maybe
-- Whether an act of this request is in the audit already: our own commit, whose reply was lost.
-- Scatter: the shard is not known before the verb is done
-- Index: audit_tenant_idx
-- Returns: number int8
SELECT number FROM betimes.audit
 WHERE tenant_id = :tenant::uuid AND at >= :since::timestamptz AND request_id = :request::text LIMIT 1;
