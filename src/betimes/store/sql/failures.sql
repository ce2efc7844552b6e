-- Jobs that fail again and again, and their pause.

-- name: find_pausing_jobs :many
-- Of some jobs, those that shall pause after some failures.
-- Index: jobs_pkey
-- Returns: id uuid
SELECT id FROM betimes.jobs
 WHERE shard = :shard::smallint AND id = ANY (:jobs::uuid[]) AND state = 0 AND schedule ->> 'pause_after_failures' IS NOT NULL;

-- name: lock_failing_jobs :many
-- Of the jobs whose runs have just died, those that shall pause after some failures, locked: two deaths at once are
-- counted one after the other.
-- Index: jobs_pkey
-- Returns: id uuid, tenant_id uuid, next_fire_at timestamptz, updated_at timestamptz, most int4
SELECT id, tenant_id, next_fire_at, updated_at, (schedule ->> 'pause_after_failures')::integer AS most
  FROM betimes.jobs
 WHERE shard = :shard::smallint AND id = ANY (:jobs::uuid[]) AND state = 0 AND schedule ->> 'pause_after_failures' IS NOT NULL
 ORDER BY id
   FOR UPDATE;

-- name: count_failures :one
-- How many of the newest runs of a job that came to an end by themselves since an instant are dead.
-- Index: runs_job_idx
-- Returns: dead int8
SELECT count(*) FILTER (WHERE newest.state = 5) AS dead
  FROM (SELECT state FROM betimes.runs
         WHERE shard = :shard::smallint AND job_id = :job::uuid AND state IN (4, 5) AND finished_at > :since::timestamptz
         ORDER BY id DESC LIMIT :most::integer) AS newest;

-- name: pause_failing_job :maybe
-- Pause a job because it failed too often in a row.
-- Index: jobs_pkey
-- Guard: only an active job; the caller holds its row
-- Returns: id uuid
UPDATE betimes.jobs
   SET state = 2, next_fire_at = NULL, fires = fires - :forgotten::bigint, updated_at = :now::timestamptz, state_reason = :reason::text::jsonb
 WHERE shard = :shard::smallint AND id = :job::uuid AND state = 0
RETURNING id;

-- name: skip_planned_runs :many
-- End what is planned of a job and not due yet; no worker can hold it before it is visible.
-- Index: runs_job_idx
-- Guard: only rows that are not over
-- Returns: id uuid, tenant_id uuid, job_id uuid, queue text, handler text, attempt int2
UPDATE betimes.runs
   SET state = 7, finished_at = :now::timestamptz, reason = :reason::text
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND state < 4 AND trigger = 0
   AND due_at > :now::timestamptz
RETURNING id, tenant_id, job_id, queue, handler, attempt;

-- name: tell_auto_paused :exec
-- Tell those who want to know that a job was paused by the rule.
-- Guard: the id is a function of the job and the time; a repeat tells nothing twice
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, 'job.auto_paused', :subject::text, :body::text::jsonb, :now::timestamptz)
ON CONFLICT DO NOTHING;
