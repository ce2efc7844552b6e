-- What became of attempts. Every statement repeats what the worker holds: parcel, fence, worker.

-- name: finish_succeeded :many
-- Mark runs as succeeded in place and drop the parcels that are done, if we still hold them.
-- Index: parcels_pkey, runs_pkey
-- Guard: worker and fence of each parcel, under a lock that conflicts with the reaper
-- Returns: run_id uuid
WITH held AS MATERIALIZED (
    SELECT parcels.id, parcels.fence
      FROM betimes.parcels
      JOIN unnest(:parcels::uuid[], :fences::integer[]) AS claim (id, fence)
        ON claim.id = parcels.id AND claim.fence = parcels.fence
     WHERE parcels.shard = :shard::smallint AND parcels.worker_id = :worker::uuid
       FOR UPDATE OF parcels
), gone AS (
    DELETE FROM betimes.parcels USING held
     WHERE parcels.shard = :shard::smallint AND parcels.id = held.id AND held.id = ANY (:emptied::uuid[])
)
UPDATE betimes.runs
   SET state = 4, attempt = done.attempt, fence = held.fence, worker_id = :worker::uuid,
       first_started_at = coalesce(runs.first_started_at, done.started_at), started_at = done.started_at,
       finished_at = done.finished_at, result = done.result, error = NULL, reason = NULL
  FROM held
  JOIN unnest(:runs::uuid[], :homes::uuid[], :attempts::smallint[], :started::timestamptz[], :finished::timestamptz[],
              :results::bytea[])
       AS done (id, parcel_id, attempt, started_at, finished_at, result)
    ON done.parcel_id = held.id
 WHERE runs.shard = :shard::smallint AND runs.id = done.id AND runs.id >= :low::uuid AND runs.id <= :high::uuid
   AND runs.state < 4
RETURNING runs.id AS run_id;

-- name: hold_parcels :many
-- Lock the parcels of a flush that we still hold, for the slower endings.
-- Index: parcels_pkey
-- Guard: worker and fence, under a lock that conflicts with the reaper
-- Returns: id uuid, fence int4, run_ids _uuid
SELECT parcels.id, parcels.fence, parcels.run_ids
  FROM betimes.parcels
  JOIN unnest(:parcels::uuid[], :fences::integer[]) AS claim (id, fence)
    ON claim.id = parcels.id AND claim.fence = parcels.fence
 WHERE parcels.shard = :shard::smallint AND parcels.worker_id = :worker::uuid
   FOR UPDATE OF parcels;

-- name: finish_otherwise :many
-- Write any other ending, or a retry, into the run rows. The caller holds the parcels.
-- Index: runs_pkey
-- Guard: only rows that are not final; the caller locked the parcels with their fences
-- Returns: run_id uuid
UPDATE betimes.runs
   SET state = ended.state, attempt = ended.attempt, fence = ended.fence, worker_id = :worker::uuid,
       first_started_at = coalesce(runs.first_started_at, ended.started_at),
       started_at = coalesce(ended.started_at, runs.started_at), finished_at = ended.finished_at,
       result = ended.result, error = ended.error::jsonb, reason = ended.reason
  FROM unnest(:runs::uuid[], :states::smallint[], :attempts::smallint[], :fences::integer[], :started::timestamptz[],
              :finished::timestamptz[], :results::bytea[], :errors::text[], :reasons::text[])
       AS ended (id, state, attempt, fence, started_at, finished_at, result, error, reason)
 WHERE runs.shard = :shard::smallint AND runs.id = ended.id AND runs.id >= :low::uuid AND runs.id <= :high::uuid
   AND runs.state < 4
RETURNING runs.id AS run_id;

-- name: shrink_parcel :exec
-- Take runs out of a parcel that goes on being leased. The caller holds it.
-- Index: parcels_pkey
UPDATE betimes.parcels
   SET run_ids = ARRAY(SELECT kept FROM unnest(parcels.run_ids) AS kept WHERE kept <> ALL (:gone::uuid[]))
 WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: insert_attempts :exec
-- Remember attempts that did not succeed; a repeated report changes nothing.
INSERT INTO betimes.attempts (shard, run_id, number, tenant_id, worker_id, fence, started_at, finished_at, next_retry_at, outcome, error)
SELECT :shard::smallint, tried.run_id, tried.number, tried.tenant_id, :worker::uuid, tried.fence, tried.started_at,
       tried.finished_at, tried.next_retry_at, tried.outcome, tried.error::jsonb
  FROM unnest(:runs::uuid[], :numbers::smallint[], :tenants::uuid[], :fences::integer[], :started::timestamptz[],
              :finished::timestamptz[], :retries::timestamptz[], :outcomes::smallint[], :errors::text[])
       AS tried (run_id, number, tenant_id, fence, started_at, finished_at, next_retry_at, outcome, error)
ON CONFLICT DO NOTHING;

-- name: insert_dead_letters :exec
-- Lay runs that are out of attempts aside, with why; a run that dies again after a redrive is open again.
-- Index: dead_letters_pkey
INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, job_id, dead_at, attempts, queue, handler, fingerprint, reason, error)
SELECT :shard::smallint, dead.run_id, dead.tenant_id, dead.job_id, dead.dead_at, dead.attempts, dead.queue, dead.handler,
       dead.fingerprint, dead.reason, dead.error::jsonb
  FROM unnest(:runs::uuid[], :tenants::uuid[], :jobs::uuid[], :dead_at::timestamptz[], :attempts::smallint[],
              :queues::text[], :handlers::text[], :fingerprints::text[], :reasons::text[], :errors::text[])
       AS dead (run_id, tenant_id, job_id, dead_at, attempts, queue, handler, fingerprint, reason, error)
ON CONFLICT (shard, run_id) DO UPDATE
   SET dead_at = excluded.dead_at, attempts = excluded.attempts, fingerprint = excluded.fingerprint,
       reason = excluded.reason, error = excluded.error, state = 0, resolved_at = NULL;

-- name: find_finished_by :many
-- Which of these runs already carry our worker and fence: our own commit whose reply was lost.
-- Index: runs_pkey
-- Returns: run_id uuid
SELECT runs.id AS run_id
  FROM betimes.runs
  JOIN unnest(:runs::uuid[], :fences::integer[]) AS claim (id, fence) ON claim.id = runs.id AND claim.fence = runs.fence
 WHERE runs.shard = :shard::smallint AND runs.worker_id = :worker::uuid
   AND runs.id >= :low::uuid AND runs.id <= :high::uuid;

-- name: find_cancelled :many
-- Which of these running runs somebody wants ended, or has ended already.
-- Index: runs_pkey
-- Returns: run_id uuid
SELECT id AS run_id FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   -- A time beyond all times means: let this attempt end in peace, but start no other.
   AND (cancel_at < '9999-01-01 00:00:00+00' OR state >= 4);

-- name: follow_jobs :exec
-- Give jobs with a fixed delay their next fire, now that their run has ended.
-- Index: jobs_pkey
-- Guard: revision, and only where no next fire is waiting
UPDATE betimes.jobs
   SET next_fire_at = step.next_fire_at
  FROM unnest(:jobs::uuid[], :revisions::integer[], :next_fires::timestamptz[]) AS step (id, revision, next_fire_at)
 WHERE jobs.shard = :shard::smallint AND jobs.id = step.id AND jobs.revision = step.revision
   AND jobs.next_fire_at IS NULL AND jobs.state = 0;
