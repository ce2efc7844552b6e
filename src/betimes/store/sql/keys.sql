-- API keys: found by their public id, compared by a digest, never shown again.

-- name: read_key :maybe
-- A key with what its tenant allows, by the id that stands in its text.
-- Returns: id text, tenant_id uuid, name text, kind text, digest bytea, scopes _text, queues _text, networks _text, created_at timestamptz, created_by text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, replaces text, tenant_slug text, tenant_state int2, tenant_reason text, tenant_timezone text, tenant_quotas text, tenant_settings text
SELECT api_keys.id, api_keys.tenant_id, api_keys.name, kind, digest, scopes, queues, networks::text[] AS networks,
       api_keys.created_at, api_keys.created_by, expires_at, revoked_at, last_used_at, replaces, tenants.slug AS tenant_slug,
       tenants.state AS tenant_state, tenants.state_reason AS tenant_reason, tenants.timezone AS tenant_timezone,
       tenants.quotas::text AS tenant_quotas, tenants.settings::text AS tenant_settings
  FROM betimes.api_keys JOIN betimes.tenants ON tenants.id = api_keys.tenant_id
 WHERE api_keys.id = :id::text;

-- name: read_tenant_state :maybe
-- Whether a tenant is open, for those who act for it without a key.
-- Returns: state int2, state_reason text
SELECT state, state_reason FROM betimes.tenants WHERE id = :tenant::uuid;

-- name: list_keys :many
-- Keys of a tenant, oldest first, page by page.
-- Index: api_keys_tenant_idx
-- Returns: id text, tenant_id uuid, name text, kind text, scopes _text, queues _text, networks _text, created_at timestamptz, created_by text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, replaces text
SELECT id, tenant_id, name, kind, scopes, queues, networks::text[] AS networks, created_at, created_by, expires_at,
       revoked_at, last_used_at, replaces
  FROM betimes.api_keys
 WHERE tenant_id = :tenant::uuid AND (created_at, id) > (:after_at::timestamptz, :after_id::text)
 ORDER BY created_at, id LIMIT :most::integer;

-- name: read_own_key :maybe
-- One key of a tenant.
-- Returns: id text, tenant_id uuid, name text, kind text, scopes _text, queues _text, networks _text, created_at timestamptz, created_by text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, replaces text
SELECT id, tenant_id, name, kind, scopes, queues, networks::text[] AS networks, created_at, created_by, expires_at,
       revoked_at, last_used_at, replaces
  FROM betimes.api_keys WHERE id = :id::text AND tenant_id = :tenant::uuid;

-- name: lock_own_key :maybe
-- One key of a tenant, held until the end of the transaction: what is written follows from what was read.
-- Returns: id text, tenant_id uuid, name text, kind text, scopes _text, queues _text, networks _text, created_at timestamptz, created_by text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, replaces text
SELECT id, tenant_id, name, kind, scopes, queues, networks::text[] AS networks, created_at, created_by, expires_at,
       revoked_at, last_used_at, replaces
  FROM betimes.api_keys WHERE id = :id::text AND tenant_id = :tenant::uuid
   FOR UPDATE;

-- name: insert_key :exec
-- Keep a new key; its secret only as a digest.
INSERT INTO betimes.api_keys (id, tenant_id, name, kind, digest, scopes, queues, networks, created_at, created_by, expires_at, replaces)
VALUES (:id::text, :tenant::uuid, :name::text, :kind::text, :digest::bytea, :scopes::text[], :queues::text[],
        :networks::text[]::cidr[], :now::timestamptz, :created_by::text, :expires_at::timestamptz, :replaces::text)
ON CONFLICT DO NOTHING;

-- name: change_key :maybe
-- Rename a key, or bind it otherwise.
-- Guard: a revoked key stays as it is
-- Returns: id text
UPDATE betimes.api_keys
   SET name = :name::text, scopes = :scopes::text[], queues = :queues::text[], networks = :networks::text[]::cidr[],
       expires_at = :expires_at::timestamptz
 WHERE id = :id::text AND tenant_id = :tenant::uuid AND revoked_at IS NULL
RETURNING id;

-- name: revoke_key :maybe
-- Revoke a key now; revoking it again changes nothing.
-- Returns: id text
UPDATE betimes.api_keys SET revoked_at = coalesce(revoked_at, :now::timestamptz)
 WHERE id = :id::text AND tenant_id = :tenant::uuid
RETURNING id;

-- name: note_use :exec
-- Remember when keys were last used, to the hour.
UPDATE betimes.api_keys SET last_used_at = :now::timestamptz
 WHERE id = ANY (:ids::text[]) AND (last_used_at IS NULL OR last_used_at <= :now::timestamptz - interval '1 hour');

-- name: count_keys :one
-- How many keys of a tenant may be used.
-- Index: api_keys_tenant_idx
-- Returns: keys int8
SELECT count(*) AS keys FROM betimes.api_keys
 WHERE tenant_id = :tenant::uuid AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now::timestamptz);

-- name: count_admins :one
-- How many administrator's keys there are that may be used.
-- Returns: keys int8
SELECT count(*) AS keys FROM betimes.api_keys
 WHERE kind = 'ak' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: adopt_pepper :one
-- Keep the check of the first pepper; whoever comes later learns whether it has the same.
-- Returns: pepper_check bytea
UPDATE betimes.cluster SET pepper_check = coalesce(pepper_check, :check::bytea) WHERE one
RETURNING pepper_check;
