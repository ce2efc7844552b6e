-- Endpoints: who wants to be told of what.

-- name: list_endpoints :many
-- Endpoints of a tenant in the order of their ids, page by page.
-- Index: endpoints_pkey
-- Returns: id uuid, kind text, name text, address text, sealed bytea, key_version int4, event_types _text, filter text, settings text, secret_version int4, secret_until timestamptz, is_callback bool, listens_since timestamptz, disabled_at timestamptz, disabled_reason text, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
SELECT id, kind, name, address, secret AS sealed, key_version, event_types, filter::text AS filter, settings::text AS settings, secret_version,
       secret_until, is_callback, listens_since, disabled_at, disabled_reason, revision, created_at, created_by, updated_at
  FROM betimes.endpoints
 WHERE tenant_id = :tenant::uuid AND id > :after::uuid AND (:callbacks::boolean OR NOT is_callback)
 ORDER BY id LIMIT :most::integer;

-- name: read_endpoint :maybe
-- One endpoint of a tenant.
-- Returns: id uuid, kind text, name text, address text, sealed bytea, key_version int4, event_types _text, filter text, settings text, secret_version int4, secret_until timestamptz, is_callback bool, listens_since timestamptz, disabled_at timestamptz, disabled_reason text, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
SELECT id, kind, name, address, secret AS sealed, key_version, event_types, filter::text AS filter, settings::text AS settings, secret_version,
       secret_until, is_callback, listens_since, disabled_at, disabled_reason, revision, created_at, created_by, updated_at
  FROM betimes.endpoints WHERE tenant_id = :tenant::uuid AND id = :id::uuid;

-- name: name_endpoints :many
-- What the endpoints of a tenant are called, those of callbacks left out.
-- Index: endpoints_pkey
-- Returns: id uuid, name text
SELECT id, name FROM betimes.endpoints WHERE tenant_id = :tenant::uuid AND NOT is_callback;

-- name: count_endpoints :one
-- How many endpoints a tenant has, those of callbacks left out.
-- Returns: endpoints int8
SELECT count(*) AS endpoints FROM betimes.endpoints WHERE tenant_id = :tenant::uuid AND NOT is_callback;

-- name: insert_endpoint :maybe
-- Keep a new endpoint; one with the same id stays as it is.
-- Guard: the primary key
-- Returns: id uuid
INSERT INTO betimes.endpoints (tenant_id, id, kind, name, address, secret, key_version, event_types, filter, settings, is_callback,
                               wants_successes, wants_failures, listens_since, disabled_at, disabled_reason, created_at, created_by, updated_at)
VALUES (:tenant::uuid, :id::uuid, :kind::text, :name::text, :address::text, :sealed::bytea, :key_version::integer, :event_types::text[],
        :filter::text::jsonb, :settings::text::jsonb, :is_callback::boolean, :wants_successes::boolean, :wants_failures::boolean, :listens_since::timestamptz,
        :disabled_at::timestamptz, :disabled_reason::text, :now::timestamptz, :created_by::text, :now::timestamptz)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: change_endpoint :maybe
-- Write an endpoint over the revision that was read.
-- Guard: the revision it replaces
-- Returns: revision int4
UPDATE betimes.endpoints
   SET name = :name::text, address = :address::text, secret = :sealed::bytea, key_version = :key_version::integer, event_types = :event_types::text[],
       filter = :filter::text::jsonb, settings = :settings::text::jsonb, wants_successes = :wants_successes::boolean, wants_failures = :wants_failures::boolean,
       secret_version = :secret_version::integer, secret_until = :secret_until::timestamptz,
       listens_since = :listens_since::timestamptz, disabled_at = :disabled_at::timestamptz,
       disabled_reason = :disabled_reason::text, revision = revision + 1, updated_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND id = :id::uuid AND revision = :revision::integer
RETURNING revision;

-- name: delete_endpoint :maybe
-- Forget an endpoint.
-- Returns: id uuid
DELETE FROM betimes.endpoints WHERE tenant_id = :tenant::uuid AND id = :id::uuid RETURNING id;

-- name: disable_endpoint :maybe
-- Stop sending to an endpoint that does not take anything any more.
-- Guard: only one that is not disabled
-- Returns: revision int4
UPDATE betimes.endpoints
   SET disabled_at = :now::timestamptz, disabled_reason = :reason::text, revision = revision + 1, updated_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND id = :id::uuid AND disabled_at IS NULL
RETURNING revision;

-- name: read_listeners :many
-- The endpoints of some tenants that are not disabled, with what they want to be told.
-- Index: endpoints_pkey
-- Returns: tenant_id uuid, id uuid, kind text, name text, address text, sealed bytea, key_version int4, event_types _text, filter text, settings text, secret_version int4, secret_until timestamptz, is_callback bool, listens_since timestamptz, disabled_at timestamptz, disabled_reason text, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
SELECT tenant_id, id, kind, name, address, secret AS sealed, key_version, event_types, filter::text AS filter, settings::text AS settings,
       secret_version, secret_until, is_callback, listens_since, disabled_at, disabled_reason, revision, created_at, created_by,
       updated_at
  FROM betimes.endpoints
 WHERE tenant_id = ANY (:tenants::uuid[]) AND disabled_at IS NULL AND NOT is_callback;

-- name: endpoints_under_old_keys :many
-- Endpoints of a tenant whose credentials are sealed under other keys than the newest.
-- Index: endpoints_pkey
-- Returns: id uuid, sealed bytea, key_version int4
SELECT id, secret AS sealed, key_version FROM betimes.endpoints
 WHERE tenant_id = :tenant::uuid AND secret IS NOT NULL AND key_version < :newest::integer ORDER BY id LIMIT :most::integer;

-- name: reseal_endpoint :maybe
-- Keep the same credential under another key; nothing that people see changes.
-- Guard: the key it was sealed under when it was read
-- Returns: id uuid
UPDATE betimes.endpoints SET secret = :sealed::bytea, key_version = :key_version::integer
 WHERE tenant_id = :tenant::uuid AND id = :id::uuid AND key_version = :was::integer
RETURNING id;

-- name: begin_routing :exec
-- Follow the events of a tenant from now on, unless they are followed already.
-- Guard: the primary key
INSERT INTO betimes.routings (tenant_id, routed_through) VALUES (:tenant::uuid, statement_timestamp())
ON CONFLICT DO NOTHING;

-- name: open_mailbox :exec
-- Give an endpoint its mailbox, or look into it again: some of what waits may be due.
-- Index: mailboxes_pkey
-- Guard: the row lock; it only ever comes earlier
INSERT INTO betimes.mailboxes (shard, endpoint_id, tenant_id, next_due_at)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :due_at::timestamptz)
ON CONFLICT (shard, endpoint_id) DO UPDATE
   SET next_due_at = least(mailboxes.next_due_at, excluded.next_due_at), failures = 0, failing_since = NULL, held_until = NULL;

-- name: close_mailbox :exec
-- Look into a mailbox no more until somebody opens it.
-- Index: mailboxes_pkey
UPDATE betimes.mailboxes SET next_due_at = NULL WHERE shard = :shard::smallint AND endpoint_id = :id::uuid;

-- name: drop_mailbox :exec
-- Forget the mailbox of an endpoint that is gone; what waited in it is pruned with its day.
-- Index: mailboxes_pkey
DELETE FROM betimes.mailboxes WHERE shard = :shard::smallint AND endpoint_id = :id::uuid;

-- name: idle_callbacks :many
-- Mailboxes of callbacks in which nothing waits and from which nothing was sent for long, locked.
-- Index: mailboxes_pkey
-- Guard: the row lock, which whoever puts something in takes as well
-- Returns: endpoint_id uuid, tenant_id uuid
WITH idle AS MATERIALIZED (
    SELECT mailboxes.endpoint_id, mailboxes.tenant_id FROM betimes.mailboxes
     WHERE mailboxes.shard = :shard::smallint AND next_due_at IS NULL AND owner IS NULL
       AND greatest(last_success_at, last_failure_at) < :before::timestamptz
       AND EXISTS (SELECT FROM betimes.endpoints
                    WHERE endpoints.tenant_id = mailboxes.tenant_id AND endpoints.id = mailboxes.endpoint_id
                      AND endpoints.is_callback)
     LIMIT :most::integer FOR UPDATE OF mailboxes SKIP LOCKED
)
SELECT endpoint_id, tenant_id FROM idle;

-- name: drop_callbacks :exec
-- Forget endpoints of callbacks. The caller holds their mailboxes.
-- Guard: only those of callbacks
DELETE FROM betimes.endpoints
 USING unnest(:tenants::uuid[], :ids::uuid[]) AS idle (tenant_id, id)
 WHERE endpoints.tenant_id = idle.tenant_id AND endpoints.id = idle.id AND endpoints.is_callback;

-- name: drop_mailboxes :exec
-- Forget mailboxes. The caller holds them.
-- Index: mailboxes_pkey
DELETE FROM betimes.mailboxes WHERE shard = :shard::smallint AND endpoint_id = ANY (:ids::uuid[]);

-- name: read_mailboxes :many
-- How some endpoints fare.
-- Scatter: endpoints of a tenant lie in every shard
-- Index: mailboxes_pkey
-- Returns: endpoint_id uuid, next_due_at timestamptz, failures int4, failing_since timestamptz, held_until timestamptz, last_success_at timestamptz, last_failure_at timestamptz, last_error text
SELECT mailboxes.endpoint_id, next_due_at, failures, failing_since, held_until, last_success_at, last_failure_at, last_error
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS asked (shard, id)
  JOIN betimes.mailboxes ON mailboxes.shard = asked.shard AND mailboxes.endpoint_id = asked.id;
