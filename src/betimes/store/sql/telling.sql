-- News for those who asked to be told, beside what acts and workers tell in their own statements.

-- name: tell :exec
-- Tell what has happened, in the transaction in which it did.
-- Guard: the caller's transaction
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT news.shard, betimes.new_id(news.shard), news.tenant_id, news.type, news.subject, news.body::jsonb, statement_timestamp()
  FROM unnest(:shards::smallint[], :tenants::uuid[], :types::text[], :subjects::text[], :bodies::text[])
       AS news (shard, tenant_id, type, subject, body);

-- name: tell_completed :exec
-- Tell of jobs that have just come to the end of their schedules. Those with a single fire end as often as their runs do,
-- so they are told, like successes, only to those who asked for it.
-- Index: jobs_pkey
-- Guard: the caller has just written these states, under the revisions it names
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT :shard::smallint, betimes.new_id(:shard::smallint), jobs.tenant_id, 'job.completed', betimes.id_text('job', jobs.id),
       jsonb_build_object('job_id', betimes.id_text('job', jobs.id), 'name', jobs.name, 'state', 'completed'),
       statement_timestamp()
  FROM unnest(:ids::uuid[], :revisions::integer[], :singles::boolean[]) AS done (id, revision, is_single)
  JOIN betimes.jobs ON jobs.shard = :shard::smallint AND jobs.id = done.id AND jobs.revision = done.revision AND jobs.state = 3
 WHERE NOT done.is_single
    OR jobs.tenant_id IN (SELECT id FROM betimes.tenants WHERE settings ->> 'run_events' = 'all'
                           UNION ALL
                          SELECT tenant_id FROM betimes.endpoints
                           WHERE disabled_at IS NULL AND event_types && '{job.completed,job.*,*}'::text[]);

-- name: tell_ends :many
-- Tell of jobs that were complete when they were made and have no run under way any more, a bounded number.
-- Index: jobs_untold_idx, runs_job_idx
-- Guard: the mark that it is untold; of several janitors one tells
-- Returns: subject text
WITH over AS MATERIALIZED (
    SELECT jobs.id FROM betimes.jobs
     WHERE jobs.shard = :shard::smallint AND jobs.untold
       AND NOT EXISTS (SELECT FROM betimes.runs
                        WHERE runs.shard = :shard::smallint AND runs.job_id = jobs.id AND runs.state < 4)
     ORDER BY jobs.id LIMIT :most::integer
), done AS (
    UPDATE betimes.jobs SET untold = false FROM over
     WHERE jobs.shard = :shard::smallint AND jobs.id = over.id AND jobs.untold
    RETURNING jobs.id, jobs.tenant_id, jobs.name
)
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT :shard::smallint, betimes.new_id(:shard::smallint), done.tenant_id, 'job.completed', betimes.id_text('job', done.id),
       jsonb_build_object('job_id', betimes.id_text('job', done.id), 'name', done.name, 'state', 'completed'),
       statement_timestamp()
  FROM done
RETURNING subject;

-- name: tell_quota :many
-- Tell a tenant how much of a quota is used, unless it was told so within the hour.
-- Guard: the row of what was told; of several nodes one tells
-- Returns: type text
WITH news AS (
    INSERT INTO betimes.quota_news AS before (tenant_id, quota, type, told_at)
    VALUES (:tenant::uuid, :quota::text, :type::text, :now::timestamptz)
    ON CONFLICT (tenant_id, quota, type) DO UPDATE SET told_at = excluded.told_at
     WHERE before.told_at <= excluded.told_at - :pause::interval
    RETURNING before.type
)
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT :shard::smallint, betimes.new_id(:shard::smallint), :tenant::uuid, news.type, :quota::text, :body::text::jsonb,
       statement_timestamp()
  FROM news
RETURNING type;
