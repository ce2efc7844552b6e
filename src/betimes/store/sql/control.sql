-- Runs that wait or are under way, as the verbs find and end them. The caller holds the job's row, or the
-- parcels, so that what it reads stays true until it has written.

-- name: find_parcelled :many
-- Runs of one job that parcels of its tenant hold and that are not over.
-- Index: runs_pkey
-- Returns: id uuid
SELECT waiting.id
  FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS held (run_id)
 CROSS JOIN LATERAL (
    SELECT id, job_id FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.id = held.run_id AND runs.state < 4
    -- Keeps the condition on the job outside: with it, the whole history of the job would be read.
    OFFSET 0) AS waiting
 WHERE parcels.shard = :shard::smallint AND parcels.tenant_id = :tenant::uuid AND waiting.job_id = :job::uuid;

-- name: find_planned :many
-- Runs of one job due from an instant on that are not over, in the order of their dueness.
-- Index: runs_job_idx
-- Returns: id uuid, due_at timestamptz, fire_at timestamptz, state int2, trigger int2
SELECT id, due_at, fire_at, state, trigger FROM betimes.runs
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND state < 4
 ORDER BY id LIMIT :most::integer;

-- name: find_fires :many
-- Which fires of a job in a span have a run, whatever became of it.
-- Index: runs_job_idx
-- Returns: id uuid, fire_at timestamptz, state int2
SELECT id, fire_at, state FROM betimes.runs
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid
   AND fire_at >= :first::timestamptz AND fire_at <= :last::timestamptz AND trigger IN (0, 3)
 ORDER BY id LIMIT :most::integer;

-- name: find_stopped :many
-- The fires of a job, due from an instant on, that a pause has ended before they began.
-- Index: runs_job_idx
-- Returns: id uuid, fire_at timestamptz
SELECT id, fire_at FROM betimes.runs
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND state = 7 AND trigger = 0
   AND reason = ANY (:reasons::text[])
 ORDER BY id LIMIT :most::integer;

-- name: read_last_strange :one
-- The last fire of a job, due from an instant on, that no planner would recognise: its run has taken the place of another
-- one, so its id is not that of the fire, or it was decided. Both lie ahead only where a time comes again.
-- Index: runs_job_idx, decisions_pkey
-- Returns: fire_at timestamptz
SELECT greatest(
    (SELECT max(fire_at) FROM betimes.runs
      WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND state <> 0 AND trigger = 0 AND NOT moved
        AND ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint
            <> floor(extract(epoch FROM due_at) * 1000)::bigint),
    (SELECT coalesce(until_at, fire_at) FROM betimes.decisions
      WHERE shard = :shard::smallint AND job_id = :job::uuid
      ORDER BY fire_at DESC LIMIT 1)) AS fire_at;

-- name: drop_stopped :many
-- Delete runs that a pause has ended before they began: others take their place.
-- Index: runs_pkey
-- Guard: only rows that were skipped; a publisher or a parcel that still has such an id finds no run by it
-- Returns: id uuid
DELETE FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND state = 7 AND trigger = 0
RETURNING id;

-- name: hold_parcelled :many
-- The parcels that hold any of these runs, locked in one order: nobody leases, finishes or reaps them meanwhile.
-- Guard: the row locks; a lease under way has either won already or skips them
-- Returns: id uuid, worker_id uuid, fence int4, run_ids _uuid, visible_at timestamptz, lease_until timestamptz, deliveries int4
SELECT id, worker_id, fence, run_ids, visible_at, lease_until, deliveries
  FROM betimes.parcels
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND run_ids && :runs::uuid[]
 ORDER BY id
   FOR UPDATE;

-- name: drop_unpublished :many
-- Delete planned runs of a job that no publisher can have read yet, as if they had never been planned.
-- Index: runs_job_idx
-- Guard: only runs whose parcel the publisher would make, beyond what it may have read ahead
-- Returns: id uuid, fire_at timestamptz
DELETE FROM betimes.runs
 WHERE shard = :shard::smallint AND job_id = :job::uuid AND id >= :low::uuid AND state = 0 AND trigger = 0
RETURNING id, fire_at;

-- name: end_runs :many
-- End runs that wait; every lease reads the row and drops what is over.
-- Index: runs_pkey
-- Guard: only rows that are not over
-- Returns: id uuid, tenant_id uuid, job_id uuid, queue text, handler text, attempt int2
WITH ended AS (
    UPDATE betimes.runs
       SET state = :state::smallint, finished_at = :now::timestamptz, reason = :reason::text, blocked_by = NULL
     WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state < 4
    RETURNING id, tenant_id, job_id, queue, handler, attempt, workflow_run_id
), turned AS (
    INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
    SELECT :shard::smallint, ended.workflow_run_id, ended.id, ended.tenant_id, :now::timestamptz
      FROM ended WHERE ended.workflow_run_id IS NOT NULL
    ON CONFLICT (shard, workflow_run_id, cause) DO UPDATE SET due_at = excluded.due_at
)
SELECT id, tenant_id, job_id, queue, handler, attempt FROM ended;

-- name: ask_to_end :many
-- Ask for the end of runs that a worker holds: told with the next heartbeat, and no later attempt starts.
-- It has started in time, so its deadline becomes that of its end: who has not ended it by then is not asked again.
-- Index: runs_pkey
-- Guard: only rows that are not over; a request to end soon is never put off
-- Returns: id uuid
UPDATE betimes.runs
   SET cancel_at = least(cancel_at, :at::timestamptz), reason = :reason::text, blocked_by = NULL,
       start_by = CASE WHEN cancel_at IS NULL THEN :by::timestamptz ELSE least(start_by, :by::timestamptz) END
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state < 4
RETURNING id;

-- name: renew_revision :many
-- Let runs that wait be done as their job is now: handler, payload, target, retries are looked up by the revision.
-- Index: runs_pkey
-- Guard: only rows that are not over; the caller holds their parcels, and nobody has leased them
-- Returns: id uuid
-- What no parcel holds yet keeps its fire, which the schedule of that revision may not have: nobody takes it back for it.
UPDATE betimes.runs
   SET revision = :revision::integer, handler = :handler::text, moved = moved OR state = 0
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state < 4
RETURNING id;

-- name: insert_skipped_runs :many
-- Write fires that somebody does not want as runs that are over, so that no planner makes them.
-- Guard: the primary key is a function of (job, fire time); a run that exists already stays
-- Returns: id uuid, tenant_id uuid, job_id uuid, queue text, handler text, attempt int2
INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, fire_at, revision, state, trigger, priority, queue, handler,
                          created_at, finished_at, reason)
SELECT :shard::smallint, fresh.id, :tenant::uuid, :job::uuid, fresh.due_at, fresh.fire_at, :revision::integer, 7, 0,
       :priority::smallint, :queue::text, :handler::text, :now::timestamptz, :now::timestamptz, :reason::text
  FROM unnest(:ids::uuid[], :dues::timestamptz[], :fires::timestamptz[]) AS fresh (id, due_at, fire_at)
ON CONFLICT (shard, id) DO NOTHING
RETURNING id, tenant_id, job_id, queue, handler, attempt;

-- name: insert_manual_run :maybe
-- Insert one run of a job that somebody asked for.
-- Guard: the primary key; a repeated request changes nothing
-- Returns: id uuid
INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, fire_at, revision, state, trigger, priority, queue, handler,
                          created_at, payload, options, fair, when_full, gate, rate_key, overlap, start_by)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :job::uuid, :due_at::timestamptz, :fire_at::timestamptz,
        :revision::integer, :state::smallint, :trigger::smallint, :priority::smallint, :queue::text, :handler::text,
        :now::timestamptz, :payload::bytea, :options::text::jsonb, :fair::smallint, :when_full::smallint, :gate::text,
        :rate_key::text, :overlap::smallint, :start_by::timestamptz)
ON CONFLICT (shard, id) DO NOTHING
RETURNING id;

-- name: lock_run :maybe
-- One run, held until the transaction ends.
-- Index: runs_pkey
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, overlap int2
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, payload, options::text AS options,
       result, error::text AS error, fair, gate, when_full, rate_key, overlap
  FROM betimes.runs WHERE shard = :shard::smallint AND id = :id::uuid
   FOR UPDATE;

-- name: revive_runs :many
-- Give runs one more life: back into the queue, with or without the attempts they have used.
-- Index: runs_pkey
-- Guard: only states an operator may bring back; the caller takes them out of old parcels and makes new ones
-- Returns: id uuid, fence int4, queue text, priority int2, fair int2, gate text, when_full int2, rate_key text, job_id uuid, overlap int2
-- Who is brought back by hand goes at once, beside others if need be: it vouches for nobody. In a line it waits.
UPDATE betimes.runs
   SET state = 1, overlap = CASE WHEN overlap = 1 THEN 0 ELSE overlap END, finished_at = NULL, cancel_at = NULL, reason = :reason::text,
       attempt = CASE WHEN :reset_attempts::boolean THEN 0 ELSE attempt END,
       first_started_at = CASE WHEN :reset_attempts::boolean THEN NULL ELSE first_started_at END,
       queue = coalesce(:queue::text, queue), payload = coalesce(:payload::bytea, payload)
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND state IN (3, 5, 6, 8)
RETURNING id, fence, queue, priority, fair, gate, when_full, rate_key, job_id, overlap;

-- name: change_run :maybe
-- Move a run that waits to another time, queue, priority, or only into a parcel of another name.
-- Index: runs_pkey
-- Guard: only a row that is not over; the caller holds its parcel, or has frozen the cursor of its shard
-- Returns: id uuid
UPDATE betimes.runs
   SET due_at = :due_at::timestamptz, queue = :queue::text, priority = :priority::smallint, state = :state::smallint,
       moved = moved OR :moved::boolean OR due_at <> :due_at::timestamptz
 WHERE shard = :shard::smallint AND id = :id::uuid AND state < 4
RETURNING id;

-- name: keep_words :exec
-- Keep what somebody said when a run was cancelled, or forget what was said before.
-- Index: runs_pkey
-- Guard: the caller holds the run
UPDATE betimes.runs
   SET options = CASE WHEN :words::text IS NULL THEN options - 'cancel_reason'
                      ELSE coalesce(options, '{}') || jsonb_build_object('cancel_reason', :words::text) END
 WHERE shard = :shard::smallint AND id = :run::uuid AND (:words::text IS NOT NULL OR options ? 'cancel_reason');
