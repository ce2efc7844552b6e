-- What became of attempts. Every statement repeats what the worker holds: parcel, fence, worker. What the ends write
-- about jobs is locked before the parcels are (ARCHITECTURE.md, "The order of locks").

-- The shapes below are chosen so that rows are found by primary key whatever the planner believes:
-- `IS NOT DISTINCT FROM` keeps the index on worker_id out of it, which finds everything a worker holds
-- for each parcel asked about; `(… IN (…)) IS TRUE` is one hash table, where a plain IN would become a
-- join in any order; a lower bound of the ids lets old partitions drop out, where an upper one as well
-- would look so selective that the range is walked instead of probing for each id. A probe for each id of an array
-- goes through the index from the lowest to the highest, in whatever order they are named: so parcels are locked by id,
-- without a sort.

-- name: lock_parcels :many
-- Lock the parcels of a flush that we still hold. Always a statement of its own, before any write: when
-- it has to wait for a heartbeat, the statement that follows sees the rows as they are then. Locking
-- and writing in one statement lost runs under load (a parcel deleted, its runs not finished).
-- Index: parcels_pkey
-- Guard: worker and fence, under a lock that conflicts with the reaper
-- Returns: id uuid, fence int4
SELECT id, fence FROM betimes.parcels
 WHERE shard = :shard::smallint AND id = ANY (:parcels::uuid[])
   AND worker_id IS NOT DISTINCT FROM :worker::uuid
   AND ((id, fence) IN (SELECT * FROM unnest(:parcels::uuid[], :fences::integer[]))) IS TRUE
   FOR UPDATE;

-- name: finish_succeeded :one
-- Mark runs as succeeded in place and drop the parcels that are done. The caller holds the parcels.
-- Runs in a row that share parcel, attempt and times are a streak; each run names its own by number.
-- Index: parcels_pkey, runs_pkey
-- Guard: only rows that are not final; the caller locked the parcels with their fences
-- Returns: finished int8
WITH gone AS (
    DELETE FROM betimes.parcels WHERE shard = :shard::smallint AND id = ANY (:emptied::uuid[])
), finished AS (
    UPDATE betimes.runs
       SET state = 4, attempt = (:attempts::smallint[])[done.streak], fence = (:fences::integer[])[done.streak],
           worker_id = :worker::uuid,
           first_started_at = coalesce(runs.first_started_at, (:started::timestamptz[])[done.streak]),
           started_at = (:started::timestamptz[])[done.streak],
           -- Whatever a clock did meanwhile, nothing ends before it began.
           finished_at = greatest((:finished::timestamptz[])[done.streak], (:started::timestamptz[])[done.streak]),
           result = done.result, error = NULL, reason = NULL
      FROM unnest(:runs::uuid[], :streaks::integer[], :results::bytea[]) AS done (id, streak, result)
     WHERE runs.shard = :shard::smallint AND runs.id = done.id AND runs.id >= :low::uuid AND runs.state < 4
    RETURNING runs.id, runs.tenant_id, runs.job_id, runs.queue, runs.handler, runs.attempt, runs.workflow_run_id, runs.finished_at
), turned AS (
    -- Next to nothing for everybody else: no row of this table is touched where no run belongs to a workflow run.
    INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
    SELECT :shard::smallint, finished.workflow_run_id, finished.id, finished.tenant_id, finished.finished_at
      FROM finished WHERE finished.workflow_run_id IS NOT NULL
    ON CONFLICT (shard, workflow_run_id, cause) DO UPDATE SET due_at = excluded.due_at
), told AS (
    -- Only for those who asked for it: a row per success would cost everybody as much as the success itself.
    INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
    SELECT :shard::smallint, betimes.new_id(:shard::smallint), finished.tenant_id, 'run.succeeded',
           betimes.id_text('run', finished.id),
           jsonb_build_object('run_id', betimes.id_text('run', finished.id), 'job_id', betimes.id_text('job', finished.job_id),
                              'state', 'succeeded', 'queue', finished.queue, 'handler', finished.handler,
                              'attempt', finished.attempt),
           statement_timestamp()
      FROM finished
     WHERE finished.tenant_id IN (SELECT id FROM betimes.tenants WHERE settings ->> 'run_events' = 'all'
                                   UNION ALL
                                  SELECT tenant_id FROM betimes.endpoints WHERE wants_successes AND disabled_at IS NULL)
)
SELECT count(*) AS finished FROM finished;

-- name: hold_parcels :many
-- Lock the parcels of a flush that we still hold, for the slower endings.
-- Index: parcels_pkey
-- Guard: worker and fence, under a lock that conflicts with the reaper
-- Returns: id uuid, fence int4, run_ids _uuid, tenant_id uuid, queue text, fair int2, gate text, when_full int2, line uuid, rate_key text, slot bool
SELECT id, fence, run_ids, tenant_id, queue, fair, gate, when_full, line, rate_key, slot FROM betimes.parcels
 WHERE shard = :shard::smallint AND id = ANY (:parcels::uuid[])
   AND worker_id IS NOT DISTINCT FROM :worker::uuid
   AND ((id, fence) IN (SELECT * FROM unnest(:parcels::uuid[], :fences::integer[]))) IS TRUE
   FOR UPDATE;

-- name: find_asked_to_end :many
-- Which of these runs somebody wants ended. The caller holds their parcels.
-- Index: runs_pkey
-- Returns: id uuid
SELECT id FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND cancel_at IS NOT NULL AND state < 4;

-- name: finish_otherwise :many
-- Write any other ending, or a retry, into the run rows. The caller holds the parcels.
-- Index: runs_pkey
-- Guard: only rows that are not final; the caller locked the parcels with their fences
-- Returns: run_id uuid
WITH finished AS (
UPDATE betimes.runs
   SET state = ended.state, attempt = ended.attempt, fence = ended.fence, worker_id = :worker::uuid,
       first_started_at = coalesce(runs.first_started_at, ended.started_at),
       started_at = coalesce(ended.started_at, runs.started_at),
       finished_at = CASE WHEN ended.finished_at IS NOT NULL
                          THEN greatest(ended.finished_at, coalesce(ended.started_at, runs.started_at)) END,
       result = ended.result, error = ended.error::jsonb,
       -- Whoever asked for the end has said why; the worker only knows that it was asked.
       reason = CASE WHEN ended.state = 6 AND runs.cancel_at IS NOT NULL THEN coalesce(runs.reason, ended.reason)
                     ELSE ended.reason END
  FROM unnest(:runs::uuid[], :states::smallint[], :attempts::smallint[], :fences::integer[], :started::timestamptz[],
              :finished::timestamptz[], :results::bytea[], :errors::text[], :reasons::text[])
       AS ended (id, state, attempt, fence, started_at, finished_at, result, error, reason)
 WHERE runs.shard = :shard::smallint AND runs.id = ended.id AND runs.id = ANY (:runs::uuid[])
   AND runs.id >= :low::uuid AND runs.id <= :high::uuid AND runs.state < 4
RETURNING runs.id, runs.tenant_id, runs.state, runs.workflow_run_id, runs.finished_at
), turned AS (
    INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
    SELECT :shard::smallint, finished.workflow_run_id, finished.id, finished.tenant_id, finished.finished_at
      FROM finished WHERE finished.workflow_run_id IS NOT NULL AND finished.state >= 4
    ON CONFLICT (shard, workflow_run_id, cause) DO UPDATE SET due_at = excluded.due_at
)
SELECT finished.id AS run_id FROM finished;

-- name: shrink_parcel :exec
-- Take runs out of a parcel that goes on being leased. The caller holds it.
-- Index: parcels_pkey
UPDATE betimes.parcels
   SET run_ids = ARRAY(SELECT kept FROM unnest(parcels.run_ids) AS kept WHERE kept <> ALL (:gone::uuid[]))
 WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: shrink_parcels :exec
-- Take runs that are done out of parcels that go on being leased, so that they count no longer. The caller holds them.
-- Index: parcels_pkey
UPDATE betimes.parcels
   SET run_ids = ARRAY(SELECT kept FROM unnest(parcels.run_ids) AS kept WHERE kept <> ALL (:gone::uuid[]))
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]);

-- name: insert_attempts :exec
-- Remember attempts that did not succeed; a repeated report changes nothing.
INSERT INTO betimes.attempts (shard, run_id, number, tenant_id, worker_id, fence, started_at, finished_at, next_retry_at, outcome, error, http)
SELECT :shard::smallint, tried.run_id, tried.number, tried.tenant_id, :worker::uuid, tried.fence, tried.started_at,
       greatest(tried.finished_at, tried.started_at), tried.next_retry_at, tried.outcome, tried.error::jsonb, tried.http::jsonb
  FROM unnest(:runs::uuid[], :numbers::smallint[], :tenants::uuid[], :fences::integer[], :started::timestamptz[],
              :finished::timestamptz[], :retries::timestamptz[], :outcomes::smallint[], :errors::text[], :https::text[])
       AS tried (run_id, number, tenant_id, fence, started_at, finished_at, next_retry_at, outcome, error, http)
ON CONFLICT DO NOTHING;

-- name: insert_dead_letters :exec
-- Lay runs that are out of attempts aside, with why; a run that dies again after a redrive is open again.
-- Queues may be without letters: their runs only end.
-- Index: dead_letters_pkey
INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, job_id, dead_at, attempts, queue, handler, fingerprint, reason, error)
SELECT :shard::smallint, dead.run_id, dead.tenant_id, dead.job_id, dead.dead_at, dead.attempts, dead.queue, dead.handler,
       dead.fingerprint, dead.reason, dead.error::jsonb
  FROM unnest(:runs::uuid[], :tenants::uuid[], :jobs::uuid[], :dead_at::timestamptz[], :attempts::smallint[],
              :queues::text[], :handlers::text[], :fingerprints::text[], :reasons::text[], :errors::text[])
       AS dead (run_id, tenant_id, job_id, dead_at, attempts, queue, handler, fingerprint, reason, error)
 WHERE NOT EXISTS (SELECT FROM betimes.queues
                    WHERE queues.tenant_id = dead.tenant_id AND queues.name = dead.queue AND NOT queues.dead_letter)
ON CONFLICT (shard, run_id) DO UPDATE
   SET dead_at = excluded.dead_at, attempts = excluded.attempts, fingerprint = excluded.fingerprint,
       reason = excluded.reason, error = excluded.error, state = 0, resolved_at = NULL;

-- name: tell_endings :exec
-- Tell how runs ended, or that they are tried again; successes and failed attempts only to those who asked for it.
-- Guard: the caller has just written these ends, under the fences of their parcels
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT :shard::smallint, betimes.new_id(:shard::smallint), ended.tenant_id, ended.type, betimes.id_text('run', ended.run_id),
       jsonb_build_object('run_id', betimes.id_text('run', ended.run_id), 'job_id', betimes.id_text('job', ended.job_id),
                          'state', ended.state, 'queue', ended.queue, 'handler', ended.handler, 'attempt', ended.attempt,
                          'reason', ended.reason, 'next_retry_at', ended.next_retry_at)
       || CASE WHEN ended.type = 'run.failed' THEN jsonb_build_object('error', ended.error::jsonb - 'stack') ELSE '{}' END,
       statement_timestamp()
  FROM unnest(:runs::uuid[], :tenants::uuid[], :jobs::uuid[], :types::text[], :states::text[], :queues::text[],
              :handlers::text[], :attempts::smallint[], :reasons::text[], :retries::timestamptz[],
              :wanted::boolean[], :errors::text[])
       AS ended (run_id, tenant_id, job_id, type, state, queue, handler, attempt, reason, next_retry_at, is_wanted, error)
 WHERE ended.type NOT IN ('run.succeeded', 'run.failed')
    OR ended.is_wanted
    OR ended.tenant_id IN (SELECT id FROM betimes.tenants WHERE settings ->> 'run_events' = 'all')
    OR ended.type = 'run.succeeded'
   AND ended.tenant_id IN (SELECT tenant_id FROM betimes.endpoints WHERE wants_successes AND disabled_at IS NULL)
    OR ended.type = 'run.failed'
   AND ended.tenant_id IN (SELECT tenant_id FROM betimes.endpoints WHERE wants_failures AND disabled_at IS NULL);

-- name: find_finished_by :many
-- Which of these runs carry our worker, with which fence and in which state: our own commit may have lost its reply.
-- Index: runs_pkey
-- Returns: run_id uuid, fence int4, state int2
SELECT id AS run_id, fence, state FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND worker_id = :worker::uuid;

-- name: find_unwanted :many
-- Which of these running runs somebody wants ended, or has ended already: also an attempt that its target has reported,
-- which carries our fence or, if it was handed out again, a higher one.
-- Scatter: a worker executes runs of many shards
-- Index: runs_pkey
-- Returns: run_id uuid
SELECT runs.id AS run_id
  FROM unnest(:shards::smallint[], :runs::uuid[], :fences::integer[]) AS ours (shard, id, fence)
  JOIN betimes.runs ON runs.shard = ours.shard AND runs.id = ours.id
 WHERE runs.id >= :low::uuid AND runs.id <= :high::uuid
   -- A time beyond all times means: let this attempt end in peace, but start no other.
   AND (runs.cancel_at < '9999-01-01 00:00:00+00' OR runs.state >= 4 OR runs.fence >= ours.fence);

-- name: follow_jobs :exec
-- Give jobs with a fixed delay their next fire, now that their run has ended. Not while a later run of theirs is not over:
-- this one was brought back, and the end of the later one says when to go on.
-- Index: jobs_pkey, runs_job_idx
-- Guard: revision, and only where no next fire is waiting
UPDATE betimes.jobs
   SET next_fire_at = step.next_fire_at
  FROM unnest(:runs::uuid[], :jobs::uuid[], :revisions::integer[], :next_fires::timestamptz[])
       AS step (run_id, id, revision, next_fire_at)
 WHERE jobs.shard = :shard::smallint AND jobs.id = step.id AND jobs.revision = step.revision
   AND jobs.next_fire_at IS NULL AND jobs.state = 0
   AND NOT EXISTS (SELECT FROM betimes.runs
                    WHERE runs.shard = :shard::smallint AND runs.job_id = step.id AND runs.id > step.run_id
                      AND runs.trigger = 0 AND runs.state < 4);
