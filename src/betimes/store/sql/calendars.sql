-- Named calendars of tenants, and the jobs that carry copies of them.

-- name: read_calendars :many
-- Calendars of a tenant by name.
-- Returns: name text, dates _text, weekdays _text, description text, revision int4, created_at timestamptz, updated_at timestamptz
SELECT name, dates, weekdays, description, revision, created_at, updated_at
  FROM betimes.calendars WHERE tenant_id = :tenant::uuid AND name = ANY (:names::text[]);

-- name: list_calendars :many
-- Calendars of a tenant in the order of their names, page by page.
-- Index: calendars_pkey
-- Returns: name text, dates _text, weekdays _text, description text, revision int4, created_at timestamptz, updated_at timestamptz
SELECT name, dates, weekdays, description, revision, created_at, updated_at
  FROM betimes.calendars WHERE tenant_id = :tenant::uuid AND name > :after::text ORDER BY name LIMIT :most::integer;

-- name: insert_calendar :maybe
-- Keep a new calendar; a name that is taken makes none.
-- Guard: the primary key
-- Returns: revision int4
INSERT INTO betimes.calendars (tenant_id, name, dates, weekdays, description, created_at, updated_at)
VALUES (:tenant::uuid, :name::text, :dates::text[], :weekdays::text[], :description::text, :now::timestamptz, :now::timestamptz)
ON CONFLICT DO NOTHING
RETURNING revision;

-- name: change_calendar :maybe
-- Replace a calendar; the revision rises.
-- Guard: the revision it replaces
-- Returns: revision int4
UPDATE betimes.calendars
   SET dates = :dates::text[], weekdays = :weekdays::text[], description = :description::text, revision = revision + 1,
       updated_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND revision = :revision::integer
RETURNING revision;

-- name: delete_calendar :maybe
-- Forget a calendar.
-- Returns: name text
DELETE FROM betimes.calendars WHERE tenant_id = :tenant::uuid AND name = :name::text RETURNING name;

-- name: count_calendar_users :one
-- How many jobs carry a copy of a calendar, counted no further than a bound.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_calendars_idx
-- Returns: jobs int8
SELECT count(*) AS jobs
  FROM (SELECT FROM betimes.jobs
         WHERE tenant_id = :tenant::uuid AND options ? 'calendars' AND options -> 'calendars' ? :name::text
         LIMIT :most::integer) AS few;

-- name: stale_calendar_users :many
-- Jobs that may still fire and carry another revision of a calendar than the present one, by id.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_calendars_idx
-- Returns: id uuid
SELECT id FROM betimes.jobs
 WHERE tenant_id = :tenant::uuid AND id > :after::uuid AND options ? 'calendars' AND state < 3
   AND options -> 'calendars' ? :name::text
   AND (options -> 'calendars' ->> :name::text)::integer <> :revision::integer
 ORDER BY id LIMIT :most::integer;
