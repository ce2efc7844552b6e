-- Tenants: who owns things. Written by administrators only, who act as the system.

-- name: find_tenant :maybe
-- A tenant by its id or its slug.
-- Returns: id uuid, slug text, name text, timezone text, plan text, state int2, state_reason text, weight float4, quotas text, settings text, revision int4, created_at timestamptz, updated_at timestamptz
SELECT id, slug, name, timezone, plan, state, state_reason, weight, quotas::text AS quotas, settings::text AS settings, revision,
       created_at, updated_at
  FROM betimes.tenants WHERE id = :id::uuid OR slug = :slug::text;

-- name: list_tenants :many
-- Tenants in the order of their slugs, page by page.
-- Index: tenants_slug_key
-- Returns: id uuid, slug text, name text, timezone text, plan text, state int2, state_reason text, weight float4, quotas text, settings text, revision int4, created_at timestamptz, updated_at timestamptz
SELECT id, slug, name, timezone, plan, state, state_reason, weight, quotas::text AS quotas, settings::text AS settings, revision,
       created_at, updated_at
  FROM betimes.tenants WHERE slug > :after::text ORDER BY slug LIMIT :most::integer;

-- name: insert_tenant :maybe
-- Make a tenant; a slug that is taken makes none.
-- Guard: the slug is unique
-- Returns: id uuid
INSERT INTO betimes.tenants (id, slug, name, timezone, plan, weight, quotas, settings, created_at, updated_at)
VALUES (:id::uuid, :slug::text, :name::text, :timezone::text, :plan::text, :weight::real, :quotas::text::jsonb,
        :settings::text::jsonb, :now::timestamptz, :now::timestamptz)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: change_tenant :maybe
-- Change a tenant; the revision rises.
-- Index: tenants_pkey
-- Guard: the revision it replaces
-- Returns: revision int4
UPDATE betimes.tenants
   SET name = :name::text, timezone = :timezone::text, plan = :plan::text, weight = :weight::real,
       quotas = :quotas::text::jsonb, settings = :settings::text::jsonb, state = :state::smallint,
       state_reason = :state_reason::text, revision = revision + 1, updated_at = :now::timestamptz
 WHERE id = :id::uuid AND revision = :revision::integer
RETURNING revision;
