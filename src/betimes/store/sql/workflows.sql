-- Definitions of workflows. Every version is a row that never changes; what is deleted is only marked.

-- name: lock_newest_workflow :maybe
-- The newest version of a workflow, deleted or not, held until the transaction ends.
-- Index: workflows_pkey
-- Returns: version int4, id uuid, digest bytea, created_at timestamptz, created_by text, deleted_at timestamptz
SELECT version, id, digest, created_at, created_by, deleted_at
  FROM betimes.workflows
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND name = :name::text
 ORDER BY version DESC LIMIT 1
   FOR UPDATE;

-- name: insert_workflow :maybe
-- Keep a new version.
-- Guard: the primary key; of two that are made at once one comes back without a row
-- Returns: version int4
INSERT INTO betimes.workflows (shard, tenant_id, name, version, id, definition, digest, created_at, created_by)
VALUES (:shard::smallint, :tenant::uuid, :name::text, :version::integer, :id::uuid, :definition::bytea, :digest::bytea,
        :now::timestamptz, :by::text)
ON CONFLICT DO NOTHING
RETURNING version;

-- name: read_workflow :maybe
-- One version of a workflow that is not deleted; without a number the newest.
-- Returns: name text, version int4, id uuid, definition bytea, digest bytea, created_at timestamptz, created_by text
SELECT name, version, id, definition, digest, created_at, created_by
  FROM betimes.workflows
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND name = :name::text AND deleted_at IS NULL
   AND (:version::integer IS NULL OR version = :version::integer)
 ORDER BY version DESC LIMIT 1;

-- name: list_workflows :many
-- The newest version of each workflow of a tenant, by name; no more than fit into so many bytes, and one more.
-- Scatter: a tenant's workflows lie in every shard
-- Index: workflows_tenant_idx
-- Returns: name text, version int4, id uuid, definition bytea, digest bytea, created_at timestamptz, created_by text
SELECT name, version, id, definition, digest, created_at, created_by
  FROM (SELECT newest.*, sum(octet_length(definition)) OVER (ORDER BY name) - octet_length(definition) AS before
          FROM (SELECT DISTINCT ON (name) name, version, id, definition, digest, created_at, created_by
                  FROM betimes.workflows
                 WHERE tenant_id = :tenant::uuid AND deleted_at IS NULL AND name > :after::text
                 ORDER BY name, version DESC LIMIT :most::integer) AS newest) AS page
 WHERE page.before < :bytes::bigint
 ORDER BY name;

-- name: list_workflow_versions :many
-- Versions of a workflow, newest first; no more than fit into so many bytes, and one more.
-- Returns: name text, version int4, id uuid, definition bytea, digest bytea, created_at timestamptz, created_by text
SELECT name, version, id, definition, digest, created_at, created_by
  FROM (SELECT versions.*, sum(octet_length(definition)) OVER (ORDER BY version DESC) - octet_length(definition) AS before
          FROM (SELECT name, version, id, definition, digest, created_at, created_by
                  FROM betimes.workflows
                 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND name = :name::text
                   AND deleted_at IS NULL AND version < :before::integer
                 ORDER BY version DESC LIMIT :most::integer) AS versions) AS page
 WHERE page.before < :bytes::bigint
 ORDER BY version DESC;

-- name: delete_workflow :many
-- Mark every version of a workflow as deleted; the next one goes on counting.
-- Returns: version int4
UPDATE betimes.workflows SET deleted_at = :now::timestamptz
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND name = :name::text AND deleted_at IS NULL
RETURNING version;

-- name: find_workflow_jobs :many
-- Some jobs whose target is this workflow.
-- Scatter: a tenant's jobs lie in every shard
-- Returns: id uuid
SELECT id FROM betimes.jobs
 WHERE tenant_id = :tenant::uuid AND target ->> 'type' = 'workflow' AND target ->> 'workflow' = :name::text AND state IN (0, 1, 2)
 LIMIT :most::integer;
