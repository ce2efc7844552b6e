-- Emptying mailboxes. Whoever does holds the mailbox by lease; every write repeats owner and fence.

-- name: find_due_mailboxes :many
-- Mailboxes in which something is due and that nobody empties, the longest due first.
-- Scatter: any shard may have one
-- Index: mailboxes_due_idx
-- Returns: shard int2, endpoint_id uuid, tenant_id uuid
SELECT shard, endpoint_id, tenant_id FROM betimes.mailboxes
 WHERE next_due_at <= coalesce(:now::timestamptz, statement_timestamp())
   AND (lease_until IS NULL OR lease_until <= coalesce(:now::timestamptz, statement_timestamp()))
 ORDER BY next_due_at LIMIT :most::integer;

-- name: claim_mailbox :maybe
-- Take a mailbox unless somebody else has meanwhile.
-- Index: mailboxes_pkey
-- Guard: only while nobody holds it; the fence rises and guards every later write
-- Returns: fence int4, failures int4, failing_since timestamptz, held_until timestamptz, now timestamptz
UPDATE betimes.mailboxes
   SET owner = :owner::uuid, fence = fence + 1,
       lease_until = coalesce(:now::timestamptz, statement_timestamp()) + :ttl::interval
 WHERE shard = :shard::smallint AND endpoint_id = :id::uuid
   AND (lease_until IS NULL OR lease_until <= coalesce(:now::timestamptz, statement_timestamp()))
RETURNING mailboxes.fence, mailboxes.failures, mailboxes.failing_since, mailboxes.held_until,
          coalesce(:now::timestamptz, statement_timestamp()) AS now;

-- name: due_deliveries :many
-- What is due in a mailbox, the longest due first.
-- Index: deliveries_waiting_idx
-- Returns: id uuid, event_id uuid, event_type text, attempt int2, is_test bool, created_at timestamptz, due_at timestamptz
SELECT id, event_id, event_type, attempt, is_test, created_at, due_at FROM betimes.deliveries
 WHERE shard = :shard::smallint AND endpoint_id = :endpoint::uuid
   AND due_at <= coalesce(:now::timestamptz, statement_timestamp()) AND (is_test OR NOT :only_tests::boolean)
 ORDER BY due_at, id LIMIT :most::integer;

-- name: read_told :many
-- Events by their ids, as they were written.
-- Scatter: events of a tenant lie in every shard
-- Returns: id uuid, type text, subject text, body text, created_at timestamptz
SELECT outbox.id, type, subject, body::text AS body, created_at
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.outbox ON outbox.shard = asked.shard AND outbox.id = asked.id
 WHERE outbox.tenant_id = :tenant::uuid;

-- name: read_run_contents :many
-- What runs were given, by themselves or by their job as it was then, and what came of them.
-- Scatter: runs of a tenant lie in every shard
-- Index: runs_pkey
-- Returns: id uuid, payload bytea, result bytea, error text
SELECT runs.id, coalesce(runs.payload, jobs.payload, job_revisions.payload) AS payload, runs.result, runs.error::text AS error
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.runs ON runs.shard = asked.shard AND runs.id = asked.id
  LEFT JOIN betimes.jobs ON jobs.shard = runs.shard AND jobs.id = runs.job_id AND jobs.revision = runs.revision
  LEFT JOIN betimes.job_revisions ON job_revisions.shard = runs.shard AND job_revisions.job_id = runs.job_id
        AND job_revisions.revision = runs.revision
 WHERE runs.tenant_id = :tenant::uuid;

-- name: hold_mailbox :maybe
-- Lock a mailbox that we hold. Always a statement of its own, so that what follows sees what others put into it.
-- Index: mailboxes_pkey
-- Guard: owner and fence
-- Returns: now timestamptz
SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now FROM betimes.mailboxes
 WHERE shard = :shard::smallint AND endpoint_id = :id::uuid AND owner = :owner::uuid AND fence = :fence::integer
   FOR UPDATE;

-- name: mark_deliveries :exec
-- Write down what became of attempts. The caller holds the mailbox.
-- Index: deliveries_pkey
-- Guard: only what waits, at the attempt it was read at; the caller holds the mailbox
UPDATE betimes.deliveries
   SET state = done.state, attempt = done.attempt, due_at = done.due_at, status = done.status, error = done.error,
       response = done.response::jsonb, attempted_at = :now::timestamptz,
       finished_at = CASE WHEN done.state <> 0 THEN :now::timestamptz END
  FROM unnest(:ids::uuid[], :states::smallint[], :attempts::smallint[], :due::timestamptz[], :statuses::smallint[],
              :errors::text[], :responses::text[])
       AS done (id, state, attempt, due_at, status, error, response)
 WHERE deliveries.shard = :shard::smallint AND deliveries.id = done.id AND deliveries.id >= :low::uuid AND deliveries.id <= :high::uuid
   AND deliveries.state = 0;

-- name: note_health :exec
-- Write down how an endpoint fares, and keep its mailbox. The caller holds it.
-- Index: mailboxes_pkey
-- Guard: owner and fence
UPDATE betimes.mailboxes
   SET failures = :failures::integer, failing_since = :failing_since::timestamptz, held_until = :held_until::timestamptz,
       last_success_at = coalesce(:success_at::timestamptz, last_success_at),
       last_failure_at = coalesce(:failure_at::timestamptz, last_failure_at),
       last_error = CASE WHEN :failure_at::timestamptz IS NULL THEN last_error ELSE :error::text END,
       lease_until = :lease_until::timestamptz
 WHERE shard = :shard::smallint AND endpoint_id = :id::uuid AND owner = :owner::uuid AND fence = :fence::integer;

-- name: first_due :maybe
-- When the first delivery that waits in a mailbox is due. The caller holds the mailbox.
-- Index: deliveries_waiting_idx
-- Returns: due_at timestamptz
SELECT due_at FROM betimes.deliveries
 WHERE shard = :shard::smallint AND endpoint_id = :endpoint::uuid AND due_at IS NOT NULL AND (is_test OR NOT :only_tests::boolean)
 ORDER BY due_at, id LIMIT 1;

-- name: release_mailbox :exec
-- Let go of a mailbox until something in it is due.
-- Index: mailboxes_pkey
-- Guard: owner and fence
UPDATE betimes.mailboxes SET owner = NULL, lease_until = NULL, next_due_at = :next_due_at::timestamptz
 WHERE shard = :shard::smallint AND endpoint_id = :id::uuid AND owner = :owner::uuid AND fence = :fence::integer;

-- name: tell_endpoint :exec
-- Tell those who want to know what became of an endpoint.
-- Guard: the caller has just written it
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :type::text, :subject::text, :body::text::jsonb, :now::timestamptz)
ON CONFLICT DO NOTHING;

-- name: insert_test :exec
-- Put a test into a mailbox.
-- Guard: the primary key
INSERT INTO betimes.deliveries (shard, id, tenant_id, endpoint_id, event_id, event_type, due_at, created_at, is_test)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :endpoint::uuid, :event::uuid, :type::text, :now::timestamptz,
        :now::timestamptz, true)
ON CONFLICT DO NOTHING;

-- name: list_deliveries :many
-- Deliveries to an endpoint, the newest first, page by page.
-- Index: deliveries_endpoint_idx
-- Returns: id uuid, endpoint_id uuid, event_id uuid, event_type text, due_at timestamptz, state int2, attempt int2, is_test bool, status int2, error text, response text, created_at timestamptz, attempted_at timestamptz, finished_at timestamptz
SELECT id, endpoint_id, event_id, event_type, due_at, state, attempt, is_test, status, error, response::text AS response, created_at,
       attempted_at, finished_at
  FROM betimes.deliveries
 WHERE shard = :shard::smallint AND endpoint_id = :endpoint::uuid AND tenant_id = :tenant::uuid AND id < :before_id::uuid
   AND (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:types::text[] IS NULL OR event_type = ANY (:types::text[]))
 ORDER BY id DESC LIMIT :most::integer;

-- name: read_delivery :maybe
-- One delivery of a tenant.
-- Returns: id uuid, endpoint_id uuid, event_id uuid, event_type text, due_at timestamptz, state int2, attempt int2, is_test bool, status int2, error text, response text, created_at timestamptz, attempted_at timestamptz, finished_at timestamptz
SELECT id, endpoint_id, event_id, event_type, due_at, state, attempt, is_test, status, error, response::text AS response, created_at,
       attempted_at, finished_at
  FROM betimes.deliveries WHERE shard = :shard::smallint AND id = :id::uuid AND tenant_id = :tenant::uuid;

-- name: redeliver :many
-- Let deliveries that are over wait once more, with all their attempts before them.
-- Guard: only what is over
-- Returns: id uuid
UPDATE betimes.deliveries
   SET state = 0, attempt = 0, due_at = :now::timestamptz, finished_at = NULL
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND id = ANY (:ids::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND state = ANY (:states::smallint[])
RETURNING id;
