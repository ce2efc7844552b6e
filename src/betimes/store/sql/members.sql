-- People of a tenant, and the sessions they open.

-- name: list_members :many
-- Members of a tenant in the order of their ids, page by page.
-- Returns: id uuid, email text, name text, role text, revision int4, created_at timestamptz, updated_at timestamptz, created_by text, signed_in_at timestamptz, code_until timestamptz, has_password bool
SELECT id, email, name, role, revision, created_at, updated_at, created_by, signed_in_at, code_until,
       password IS NOT NULL AS has_password
  FROM betimes.members WHERE tenant_id = :tenant::uuid AND id > :after::uuid ORDER BY id LIMIT :most::integer;

-- name: read_member :maybe
-- One member of a tenant.
-- Returns: id uuid, email text, name text, role text, revision int4, created_at timestamptz, updated_at timestamptz, created_by text, signed_in_at timestamptz, code_until timestamptz, has_password bool
SELECT id, email, name, role, revision, created_at, updated_at, created_by, signed_in_at, code_until,
       password IS NOT NULL AS has_password
  FROM betimes.members WHERE tenant_id = :tenant::uuid AND id = :id::uuid;

-- name: insert_member :maybe
-- Keep a new member with the digest of the code that lets them in; an address that is taken makes none.
-- Guard: the address is unique in the tenant
-- Returns: id uuid
INSERT INTO betimes.members (tenant_id, id, email, name, role, code, code_until, created_at, updated_at, created_by)
VALUES (:tenant::uuid, :id::uuid, :email::text, :name::text, :role::text, :code::bytea, :code_until::timestamptz,
        :now::timestamptz, :now::timestamptz, :created_by::text)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: change_member :maybe
-- Change name and role, and the code if there is a new one; the revision rises.
-- Guard: the revision it replaces
-- Returns: revision int4
UPDATE betimes.members
   SET name = :name::text, role = :role::text, code = coalesce(:code::bytea, code),
       code_until = coalesce(:code_until::timestamptz, code_until), revision = revision + 1, updated_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND id = :id::uuid AND revision = :revision::integer
RETURNING revision;

-- name: delete_member :maybe
-- Forget a member; their sessions go with them.
-- Returns: id uuid
DELETE FROM betimes.members WHERE tenant_id = :tenant::uuid AND id = :id::uuid RETURNING id;

-- name: find_sign_in :maybe
-- A member by tenant and address, with what a password is compared with.
-- Returns: tenant_id uuid, id uuid, password bytea, salt bytea
SELECT members.tenant_id, members.id, password, salt
  FROM betimes.members JOIN betimes.tenants ON tenants.id = members.tenant_id
 WHERE tenants.slug = :slug::text AND members.email = :email::text;

-- name: use_code :maybe
-- Use up the code of an invitation, and keep the password that was chosen with it.
-- Guard: a code works once, and until its end
-- Returns: tenant_id uuid, id uuid
UPDATE betimes.members
   SET code = NULL, code_until = NULL, password = coalesce(:password::bytea, password), salt = coalesce(:salt::bytea, salt)
 WHERE code = :code::bytea AND code_until > :now::timestamptz
RETURNING tenant_id, id;

-- name: note_sign_in :exec
-- Remember when a member has signed in.
UPDATE betimes.members SET signed_in_at = :now::timestamptz WHERE tenant_id = :tenant::uuid AND id = :id::uuid;

-- name: insert_session :exec
-- Keep a session by the digest of its cookie.
INSERT INTO betimes.sessions (digest, tenant_id, member_id, key_id, created_at, seen_at, expires_at)
VALUES (:digest::bytea, :tenant::uuid, :member::uuid, :key_text::text, :now::timestamptz, :now::timestamptz,
        :expires_at::timestamptz)
ON CONFLICT DO NOTHING;

-- name: read_session :maybe
-- A session that is still good, with who it belongs to and what its tenant allows.
-- Returns: tenant_id uuid, member_id uuid, key_id text, expires_at timestamptz, seen_at timestamptz, name text, role text, tenant_slug text, tenant_state int2, tenant_reason text, tenant_timezone text, tenant_quotas text, tenant_settings text
SELECT sessions.tenant_id, sessions.member_id, sessions.key_id, sessions.expires_at, sessions.seen_at, members.name, members.role,
       tenants.slug AS tenant_slug, tenants.state AS tenant_state, tenants.state_reason AS tenant_reason,
       tenants.timezone AS tenant_timezone, tenants.quotas::text AS tenant_quotas, tenants.settings::text AS tenant_settings
  FROM betimes.sessions
  JOIN betimes.tenants ON tenants.id = sessions.tenant_id
  LEFT JOIN betimes.members ON members.tenant_id = sessions.tenant_id AND members.id = sessions.member_id
 WHERE sessions.digest = :digest::bytea AND sessions.expires_at > :now::timestamptz AND sessions.seen_at > :idle_since::timestamptz;

-- name: see_session :exec
-- Remember that a session is in use.
UPDATE betimes.sessions SET seen_at = :now::timestamptz WHERE digest = :digest::bytea;

-- name: end_session :maybe
-- Forget a session.
-- Returns: tenant_id uuid
DELETE FROM betimes.sessions WHERE digest = :digest::bytea RETURNING tenant_id;

-- name: prune_sessions :many
-- Forget sessions whose time is up, a bounded number.
-- Returns: digest bytea
DELETE FROM betimes.sessions
 WHERE digest IN (SELECT digest FROM betimes.sessions WHERE expires_at < :now::timestamptz LIMIT :most::integer)
RETURNING digest;

-- name: insert_grant :maybe
-- Keep the wish of a device to act for somebody, while there is room for such wishes.
-- Guard: the codes are unique, and the number of open wishes is bounded
-- Returns: user_code text
INSERT INTO betimes.device_grants (digest, user_code, name, created_at, expires_at)
SELECT :digest::bytea, :user_code::text, :name::text, :now::timestamptz, :expires_at::timestamptz
 WHERE (SELECT count(*) FROM (SELECT FROM betimes.device_grants LIMIT :most::integer) AS few) < :most::integer
ON CONFLICT DO NOTHING
RETURNING user_code;

-- name: answer_grant :maybe
-- Say yes or no to a device.
-- Guard: an open wish, in its time
-- Returns: name text
UPDATE betimes.device_grants
   SET state = :state::smallint, tenant_id = :tenant::uuid, scopes = :scopes::text[], answered_by = :by::text,
       key_until = :key_until::timestamptz
 WHERE user_code = :user_code::text AND state = 0 AND expires_at > :now::timestamptz
RETURNING name;

-- name: poll_grant :maybe
-- What became of a device's wish; asking is noted, because it may not be done too often.
-- Returns: name text, state int2, tenant_id uuid, scopes _text, answered_by text, expires_at timestamptz, polled_at timestamptz, key_until timestamptz
UPDATE betimes.device_grants AS grants SET polled_at = :now::timestamptz
  FROM (SELECT digest, polled_at FROM betimes.device_grants WHERE digest = :digest::bytea FOR UPDATE) AS before
 WHERE grants.digest = before.digest
RETURNING grants.name, grants.state, grants.tenant_id, grants.scopes, grants.answered_by, grants.expires_at, before.polled_at,
          grants.key_until;

-- name: redeem_grant :maybe
-- Use up a wish that was granted.
-- Guard: once
-- Returns: name text
UPDATE betimes.device_grants SET state = 3 WHERE digest = :digest::bytea AND state = 1 RETURNING name;

-- name: prune_grants :many
-- Forget wishes of devices whose time is up, a bounded number.
-- Returns: user_code text
DELETE FROM betimes.device_grants
 WHERE digest IN (SELECT digest FROM betimes.device_grants WHERE expires_at < :now::timestamptz LIMIT :most::integer)
RETURNING user_code;
