-- What has aged and has no partition to be dropped with.

-- name: prune_dead_letters :many
-- Forget dead letters older than they are kept, a bounded number.
-- Index: dead_letters_pkey
-- Returns: run_id uuid
WITH aged AS MATERIALIZED (
    SELECT run_id FROM betimes.dead_letters
     WHERE shard = :shard::smallint AND dead_at < :before::timestamptz
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM betimes.dead_letters USING aged
 WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = aged.run_id
RETURNING dead_letters.run_id;

-- name: prune_default_runs :many
-- Forget ended runs whose day never had a partition, or has none any more, or is kept for others, a bounded number. Those
-- that lie among the dead letters are kept as long as these.
-- Index: runs_pkey
-- Guard: the row lock, under which each is asked again whether it has ended
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT runs.id FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.id < :before_id::uuid AND runs.state >= 4
       AND runs.finished_at < :before::timestamptz
       AND (runs.state <> 5 OR NOT EXISTS (SELECT FROM betimes.dead_letters
                                            WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = runs.id))
     LIMIT :most::integer FOR UPDATE OF runs SKIP LOCKED
)
DELETE FROM betimes.runs USING aged
 WHERE runs.shard = :shard::smallint AND runs.id = aged.id AND runs.id < :before_id::uuid
RETURNING runs.id;

-- name: prune_catchups :many
-- Forget episodes of catching up that are long over, a bounded number.
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT id FROM betimes.catchups
     WHERE shard = :shard::smallint AND held = 0 AND state <> 1 AND paced_through < :before::timestamptz
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM betimes.catchups USING aged
 WHERE catchups.shard = :shard::smallint AND catchups.id = aged.id
RETURNING catchups.id;

-- name: prune_workflow_runs :many
-- Forget workflow runs that were over before an instant, with their nodes and items, a bounded number.
-- Index: workflow_runs_old_idx
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT id FROM betimes.workflow_runs
     WHERE shard = :shard::smallint AND finished_at < :before::timestamptz
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
), nodes AS (
    DELETE FROM betimes.workflow_nodes USING aged
     WHERE workflow_nodes.shard = :shard::smallint AND workflow_nodes.workflow_run_id = aged.id
), items AS (
    DELETE FROM betimes.workflow_items USING aged
     WHERE workflow_items.shard = :shard::smallint AND workflow_items.workflow_run_id = aged.id
), turns AS (
    DELETE FROM betimes.workflow_turns USING aged
     WHERE workflow_turns.shard = :shard::smallint AND workflow_turns.workflow_run_id = aged.id
)
DELETE FROM betimes.workflow_runs USING aged
 WHERE workflow_runs.shard = :shard::smallint AND workflow_runs.id = aged.id
RETURNING workflow_runs.id;

-- name: prune_alerts :many
-- Forget episodes of alerts that were over before an instant, a bounded number.
-- Index: alerts_resolved_idx
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT id FROM betimes.alerts
     WHERE shard = :shard::smallint AND resolved_at < :before::timestamptz
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM betimes.alerts USING aged
 WHERE alerts.shard = :shard::smallint AND alerts.id = aged.id
RETURNING alerts.id;

-- name: keep_blobs :many
-- Keep payloads whose time is up for another while, where something that has not ended refers to them.
-- Index: blobs_expires_idx
-- Returns: id uuid
WITH needed AS MATERIALIZED (
    SELECT tenant_id, id FROM betimes.blobs
     WHERE shard = :shard::smallint AND expires_at < coalesce(:now::timestamptz, statement_timestamp())
       AND betimes.is_referenced(tenant_id, id)
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
UPDATE betimes.blobs SET expires_at = coalesce(:now::timestamptz, statement_timestamp()) + :more::interval
  FROM needed
 WHERE blobs.shard = :shard::smallint AND blobs.tenant_id = needed.tenant_id AND blobs.id = needed.id
RETURNING blobs.id;

-- name: prune_blobs :many
-- Forget payloads and results whose time is up, a bounded number; not what something that has not ended refers to.
-- Index: blobs_expires_idx
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT tenant_id, id FROM betimes.blobs
     WHERE shard = :shard::smallint AND location IS NULL AND expires_at < coalesce(:now::timestamptz, statement_timestamp())
     LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM betimes.blobs USING aged
 WHERE blobs.shard = :shard::smallint AND blobs.tenant_id = aged.tenant_id AND blobs.id = aged.id
   AND NOT betimes.is_referenced(blobs.tenant_id, blobs.id)
RETURNING blobs.id;

-- name: prune_workers :many
-- Forget workers that were not seen for long and hold nothing; tenants are told of theirs.
-- Returns: id uuid
WITH gone AS (
    DELETE FROM betimes.workers
     WHERE heartbeat_at < coalesce(:now::timestamptz, statement_timestamp()) - :after::interval
    RETURNING id, tenant_id, name
), told AS (
    INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
    SELECT 0, betimes.new_id(0::smallint), gone.tenant_id, 'worker.offline', betimes.id_text('wrk', gone.id),
           jsonb_build_object('worker_id', betimes.id_text('wrk', gone.id), 'name', gone.name),
           coalesce(:now::timestamptz, statement_timestamp())
      FROM gone WHERE gone.tenant_id IS NOT NULL
)
SELECT id FROM gone;

-- name: prune_run_logs :many
-- Forget lines of logs older than runs are kept, a bounded number; not those of runs that have not ended or are dead.
-- Index: run_logs_at_idx
-- Returns: run_id uuid
WITH aged AS MATERIALIZED (
    SELECT run_id, seq FROM betimes.run_logs
     WHERE shard = :shard::smallint AND at < :before::timestamptz
       AND NOT EXISTS (SELECT FROM betimes.runs
                        WHERE runs.shard = :shard::smallint AND runs.id = run_logs.run_id AND (runs.state < 4 OR runs.state = 5))
     ORDER BY at LIMIT :most::integer FOR UPDATE OF run_logs SKIP LOCKED
)
DELETE FROM betimes.run_logs USING aged
 WHERE run_logs.shard = :shard::smallint AND run_logs.run_id = aged.run_id AND run_logs.seq = aged.seq
RETURNING run_logs.run_id;

-- name: prune_run_notes :many
-- Forget what workers said about runs longer ago than runs are kept, a bounded number; a run that has not ended or is
-- dead keeps its checkpoint.
-- Index: run_notes_updated_idx
-- Returns: run_id uuid
WITH aged AS MATERIALIZED (
    SELECT run_id FROM betimes.run_notes
     WHERE shard = :shard::smallint AND updated_at < :before::timestamptz
       AND NOT EXISTS (SELECT FROM betimes.runs
                        WHERE runs.shard = :shard::smallint AND runs.id = run_notes.run_id AND (runs.state < 4 OR runs.state = 5))
     ORDER BY updated_at LIMIT :most::integer FOR UPDATE OF run_notes SKIP LOCKED
)
DELETE FROM betimes.run_notes USING aged
 WHERE run_notes.shard = :shard::smallint AND run_notes.run_id = aged.run_id
RETURNING run_notes.run_id;

-- name: prune_operations :many
-- Forget operations that ended and whose time is up, a bounded number.
-- Index: operations_expires_idx
-- Returns: id uuid
WITH aged AS MATERIALIZED (
    SELECT tenant_id, id FROM betimes.operations
     WHERE shard = :shard::smallint AND expires_at < coalesce(:now::timestamptz, statement_timestamp()) AND state >= 2
     ORDER BY expires_at LIMIT :most::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM betimes.operations USING aged
 WHERE operations.shard = :shard::smallint AND operations.tenant_id = aged.tenant_id AND operations.id = aged.id
RETURNING operations.id;

-- name: find_retentions :many
-- How long queues keep what has ended, with the queues that keep it so long.
-- Returns: retain_ms int8, tenants _uuid, queues _text
SELECT retain_ms, array_agg(tenant_id ORDER BY tenant_id, name) AS tenants, array_agg(name ORDER BY tenant_id, name) AS queues
  FROM betimes.queues WHERE retain_ms IS NOT NULL GROUP BY retain_ms ORDER BY retain_ms;

-- name: find_page_end :one
-- How far a bounded number of runs reaches, beginning after one of them.
-- Index: runs_pkey
-- Returns: runs int8, last_id uuid
SELECT count(*) AS runs, (array_agg(page.id ORDER BY page.id DESC))[1] AS last_id
  FROM (SELECT id FROM betimes.runs
         WHERE shard = :shard::smallint AND id > :low::uuid AND id < :high::uuid
         ORDER BY id LIMIT :most::integer) AS page;

-- name: prune_queue_runs :many
-- Forget runs of some queues that ended before an instant, among those with ids in a span. Those that lie among the
-- dead letters are kept as long as these, and one that has begun anew meanwhile stays.
-- Index: runs_pkey
-- Returns: id uuid
WITH page AS MATERIALIZED (
    SELECT runs.id, runs.tenant_id, runs.queue FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.id > :low::uuid AND runs.id <= :high::uuid
       AND runs.state >= 4 AND runs.finished_at < :before::timestamptz
     ORDER BY runs.id
)
DELETE FROM betimes.runs USING page JOIN unnest(:tenants::uuid[], :queues::text[]) AS kept (tenant_id, queue)
    ON kept.tenant_id = page.tenant_id AND kept.queue = page.queue
 WHERE runs.shard = :shard::smallint AND runs.id = page.id AND runs.id > :low::uuid AND runs.id <= :high::uuid
   AND NOT EXISTS (SELECT FROM betimes.dead_letters
                    WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = page.id)
   AND runs.state >= 4
RETURNING runs.id;

-- name: find_retaining_jobs :many
-- Jobs that keep their runs for a time of their own, a page of them.
-- Index: jobs_retention_idx
-- Returns: id uuid, retain_ms int8
SELECT id, (options ->> 'retain_ms')::bigint AS retain_ms FROM betimes.jobs
 WHERE shard = :shard::smallint AND id > :after::uuid AND options ? 'retain_ms'
 ORDER BY id LIMIT :most::integer;

-- name: find_outlived_runs :many
-- Runs that some jobs keep no longer: due and ended before an instant, for each job its own, a bounded number. Those that
-- lie among the dead letters are kept as long as these.
-- Index: runs_job_idx
-- Returns: id uuid
SELECT aged.id FROM unnest(:jobs::uuid[], :highs::uuid[], :edges::timestamptz[]) AS kept (job_id, high, before)
 CROSS JOIN LATERAL (
    SELECT runs.id FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.job_id = kept.job_id AND runs.id < kept.high
       AND runs.state >= 4 AND runs.finished_at < kept.before
       AND NOT EXISTS (SELECT FROM betimes.dead_letters
                        WHERE dead_letters.shard = :shard::smallint AND dead_letters.run_id = runs.id)
     ORDER BY runs.id LIMIT :most::integer) AS aged
 LIMIT :most::integer;

-- name: prune_outlived_runs :many
-- Forget these runs, unless one of them has begun anew.
-- Index: runs_pkey
-- Returns: id uuid
DELETE FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state >= 4
RETURNING id;

-- name: prune_words_of :exec
-- Forget what was written about runs that are gone: attempts, lines of logs, notes.
WITH attempts AS (
    DELETE FROM betimes.attempts
     WHERE shard = :shard::smallint AND run_id = ANY (:runs::uuid[]) AND run_id >= :low::uuid AND run_id <= :high::uuid
), lines AS (
    DELETE FROM betimes.run_logs WHERE shard = :shard::smallint AND run_id = ANY (:runs::uuid[])
)
DELETE FROM betimes.run_notes WHERE shard = :shard::smallint AND run_id = ANY (:runs::uuid[]);
