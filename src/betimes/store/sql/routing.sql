-- Handing events out: from the outbox into the mailboxes of those who want to be told.

-- name: list_routings :many
-- Tenants whose events are handed out, page by page, and how far they have been.
-- Index: routings_pkey
-- Returns: tenant_id uuid, routed_through timestamptz
SELECT tenant_id, routed_through FROM betimes.routings WHERE tenant_id > :after::uuid ORDER BY tenant_id LIMIT :most::integer;

-- name: read_mailboxes_ahead :one
-- How many seconds it takes until something is due in a mailbox; none or less when it is, null when nothing waits.
-- Scatter: any shard may have one
-- Index: mailboxes_due_idx
-- Returns: due_in float8
SELECT (SELECT extract(epoch FROM next_due_at - coalesce(:now::timestamptz, statement_timestamp()))::float8
          FROM betimes.mailboxes WHERE next_due_at IS NOT NULL ORDER BY next_due_at LIMIT 1) AS due_in;

-- name: find_news :many
-- Which of these tenants have an event that arrived after an instant.
-- Scatter: a tenant's events lie in every shard
-- Index: outbox_arrived_idx
-- Returns: tenant_id uuid
SELECT asked.tenant_id
  FROM unnest(:tenants::uuid[], :afters::timestamptz[]) AS asked (tenant_id, after)
 CROSS JOIN LATERAL (
       SELECT FROM betimes.outbox
        WHERE outbox.tenant_id = asked.tenant_id AND outbox.arrived_at > asked.after
        LIMIT 1) AS news;

-- name: read_news :many
-- Events of a tenant in the order of their arrival, after a place.
-- Scatter: a tenant's events lie in every shard
-- Index: outbox_arrived_idx
-- Returns: id uuid, type text, subject text, body text, created_at timestamptz, arrived_at timestamptz
SELECT id, type, subject, body::text AS body, created_at, arrived_at FROM betimes.outbox
 WHERE tenant_id = :tenant::uuid AND (arrived_at, id) > (:after_at::timestamptz, :after_id::uuid)
 ORDER BY arrived_at, id LIMIT :most::integer;

-- name: insert_deliveries :many
-- Put events into mailboxes; what lies there already, or has been delivered, stays as it is.
-- Guard: the primary key, a function of event and endpoint
-- Returns: id uuid
INSERT INTO betimes.deliveries (shard, id, tenant_id, endpoint_id, event_id, event_type, due_at, created_at)
SELECT fresh.shard, fresh.id, :tenant::uuid, fresh.endpoint_id, fresh.event_id, fresh.event_type, :now::timestamptz, :now::timestamptz
  FROM unnest(:shards::smallint[], :ids::uuid[], :endpoints::uuid[], :events::uuid[], :types::text[])
       AS fresh (shard, id, endpoint_id, event_id, event_type)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: wake_mailboxes :exec
-- Say that something is due in mailboxes.
-- Index: mailboxes_pkey
-- Guard: the row lock; it only ever comes earlier
INSERT INTO betimes.mailboxes (shard, endpoint_id, tenant_id, next_due_at)
SELECT asked.shard, asked.id, :tenant::uuid, :now::timestamptz
  FROM unnest(:shards::smallint[], :endpoints::uuid[]) AS asked (shard, id)
ON CONFLICT (shard, endpoint_id) DO UPDATE SET next_due_at = least(mailboxes.next_due_at, excluded.next_due_at);

-- name: move_routing :exec
-- Remember how far the events of a tenant have been handed out.
UPDATE betimes.routings SET routed_through = :through::timestamptz WHERE tenant_id = :tenant::uuid;

-- name: job_labels :many
-- The tags of jobs, and whom they notify.
-- Scatter: jobs of a tenant lie in every shard
-- Returns: id uuid, tags text, notify text
SELECT jobs.id, (options -> 'tags')::text AS tags, (options -> 'notify')::text AS notify
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.jobs ON jobs.shard = asked.shard AND jobs.id = asked.id
 WHERE jobs.tenant_id = :tenant::uuid;

-- name: run_labels :many
-- The tags of runs, and whom they notify.
-- Scatter: runs of a tenant lie in every shard
-- Index: runs_pkey
-- Returns: id uuid, tags text, notify text
SELECT runs.id, (options -> 'tags')::text AS tags, (options -> 'notify')::text AS notify
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.runs ON runs.shard = asked.shard AND runs.id = asked.id
 WHERE runs.tenant_id = :tenant::uuid;
