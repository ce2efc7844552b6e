-- Forgetting a tenant, a bounded number of rows at a time. The audit stays: nobody may delete from it.

-- name: erase_vault :one
-- Forget the keys of a tenant first, and its secrets: from then on nothing that was sealed for it opens, in no copy.
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH keys AS (
    DELETE FROM betimes.data_keys WHERE tenant_id = :tenant::uuid RETURNING 1
), secrets AS (
    DELETE FROM betimes.secrets WHERE tenant_id = :tenant::uuid AND :most::integer > 0 RETURNING 1
)
SELECT (SELECT count(*) FROM keys) + (SELECT count(*) FROM secrets) AS rows;

-- name: erase_intake :one
-- Forget what was asked for and is not made yet.
-- Scatter: a tenant's intake lies in every shard
-- Index: intake_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.intake WHERE tenant_id = :tenant::uuid LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.intake USING doomed WHERE intake.shard = doomed.shard AND intake.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_parcels :one
-- Forget parcels, so that nothing is leased any more.
-- Scatter: a tenant's parcels lie in every shard
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.parcels WHERE tenant_id = :tenant::uuid LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.parcels USING doomed WHERE parcels.shard = doomed.shard AND parcels.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_runs :one
-- Forget runs with everything that was written about them.
-- Scatter: a tenant's runs lie in every shard
-- Index: runs_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.runs WHERE tenant_id = :tenant::uuid ORDER BY id LIMIT :most::integer
), attempts AS (
    DELETE FROM betimes.attempts USING doomed WHERE attempts.shard = doomed.shard AND attempts.run_id = doomed.id
), logs AS (
    DELETE FROM betimes.run_logs USING doomed WHERE run_logs.shard = doomed.shard AND run_logs.run_id = doomed.id
), notes AS (
    DELETE FROM betimes.run_notes USING doomed WHERE run_notes.shard = doomed.shard AND run_notes.run_id = doomed.id
), gone AS (
    DELETE FROM betimes.runs USING doomed WHERE runs.shard = doomed.shard AND runs.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_jobs :one
-- Forget jobs with their old definitions and the reasons for what did not run.
-- Scatter: a tenant's jobs lie in every shard
-- Index: jobs_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.jobs WHERE tenant_id = :tenant::uuid ORDER BY id LIMIT :most::integer
), revisions AS (
    DELETE FROM betimes.job_revisions USING doomed WHERE job_revisions.shard = doomed.shard AND job_revisions.job_id = doomed.id
), reasons AS (
    DELETE FROM betimes.decisions USING doomed WHERE decisions.shard = doomed.shard AND decisions.job_id = doomed.id
), gone AS (
    DELETE FROM betimes.jobs USING doomed WHERE jobs.shard = doomed.shard AND jobs.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_letters :one
-- Forget dead letters.
-- Scatter: a tenant's letters lie in every shard
-- Index: dead_letters_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, run_id FROM betimes.dead_letters WHERE tenant_id = :tenant::uuid
     ORDER BY state, dead_at LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.dead_letters USING doomed
     WHERE dead_letters.shard = doomed.shard AND dead_letters.run_id = doomed.run_id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_events :one
-- Forget events.
-- Scatter: a tenant's events lie in every shard
-- Index: outbox_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.outbox WHERE tenant_id = :tenant::uuid ORDER BY id LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.outbox USING doomed WHERE outbox.shard = doomed.shard AND outbox.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_deliveries :one
-- Forget mailboxes, and what waited in them or was delivered.
-- Scatter: endpoints of a tenant lie in every shard
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT few.shard, few.id FROM betimes.mailboxes CROSS JOIN LATERAL (
        SELECT shard, id FROM betimes.deliveries
         WHERE deliveries.shard = mailboxes.shard AND deliveries.endpoint_id = mailboxes.endpoint_id
         ORDER BY id LIMIT :most::integer) AS few
     WHERE mailboxes.tenant_id = :tenant::uuid LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.deliveries USING doomed WHERE deliveries.shard = doomed.shard AND deliveries.id = doomed.id RETURNING 1
), emptied AS (
    DELETE FROM betimes.mailboxes WHERE tenant_id = :tenant::uuid AND NOT EXISTS (SELECT FROM doomed)
)
SELECT count(*) AS rows FROM gone;

-- name: erase_alerts :one
-- Forget what alert rules have found.
-- Scatter: episodes of a tenant lie in every shard
-- Index: alerts_tenant_idx
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.alerts WHERE tenant_id = :tenant::uuid ORDER BY id LIMIT :most::integer
), gone AS (
    DELETE FROM betimes.alerts USING doomed WHERE alerts.shard = doomed.shard AND alerts.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_keys :one
-- Forget idempotency keys and business keys.
-- Scatter: one probe of an index per shard
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH requests AS (
    DELETE FROM betimes.idempotency USING (
        SELECT shards.shard, few.key, few.day FROM betimes.shards CROSS JOIN LATERAL (
            SELECT key, day FROM betimes.idempotency
             WHERE idempotency.shard = shards.shard AND tenant_id = :tenant::uuid LIMIT :most::integer) AS few
    ) AS doomed
     WHERE idempotency.shard = doomed.shard AND idempotency.tenant_id = :tenant::uuid AND idempotency.key = doomed.key
       AND idempotency.day = doomed.day RETURNING 1
), business AS (
    DELETE FROM betimes.dedupe USING betimes.shards
     WHERE dedupe.shard = shards.shard AND dedupe.tenant_id = :tenant::uuid RETURNING 1
)
SELECT (SELECT count(*) FROM requests) + (SELECT count(*) FROM business) AS rows;

-- name: erase_blobs :one
-- Forget large payloads and results.
-- Scatter: one probe of an index per shard
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH gone AS (
    DELETE FROM betimes.blobs USING (
        SELECT shards.shard, few.id FROM betimes.shards CROSS JOIN LATERAL (
            SELECT id FROM betimes.blobs
             WHERE blobs.shard = shards.shard AND tenant_id = :tenant::uuid LIMIT :most::integer) AS few
    ) AS doomed
     WHERE blobs.shard = doomed.shard AND blobs.tenant_id = :tenant::uuid AND blobs.id = doomed.id RETURNING 1
)
SELECT count(*) AS rows FROM gone;

-- name: erase_workflows :one
-- Forget graphs and their runs.
-- Scatter: a tenant's graphs lie in every shard
-- Guard: only rows of a tenant that is suspended; a repetition finds fewer
-- Returns: rows int8
WITH doomed AS MATERIALIZED (
    SELECT shard, id FROM betimes.workflow_runs WHERE tenant_id = :tenant::uuid LIMIT :most::integer
), nodes AS (
    DELETE FROM betimes.workflow_nodes USING doomed
     WHERE workflow_nodes.shard = doomed.shard AND workflow_nodes.workflow_run_id = doomed.id
), items AS (
    DELETE FROM betimes.workflow_items USING doomed
     WHERE workflow_items.shard = doomed.shard AND workflow_items.workflow_run_id = doomed.id
), turns AS (
    DELETE FROM betimes.workflow_turns USING doomed
     WHERE workflow_turns.shard = doomed.shard AND workflow_turns.workflow_run_id = doomed.id
), runs AS (
    DELETE FROM betimes.workflow_runs USING doomed
     WHERE workflow_runs.shard = doomed.shard AND workflow_runs.id = doomed.id RETURNING 1
), graphs AS (
    DELETE FROM betimes.workflows USING betimes.shards
     WHERE workflows.shard = shards.shard AND workflows.tenant_id = :tenant::uuid
), work AS (
    DELETE FROM betimes.operations USING betimes.shards
     WHERE operations.shard = shards.shard AND operations.tenant_id = :tenant::uuid
)
SELECT count(*) AS rows FROM runs;

-- name: erase_tenant :maybe
-- Forget the tenant itself, with its keys, queues, members and whatever else hangs on its row.
-- Guard: a tenant that was opened again stays
-- Returns: id uuid
DELETE FROM betimes.tenants WHERE id = :tenant::uuid AND state >= 2 RETURNING id;
