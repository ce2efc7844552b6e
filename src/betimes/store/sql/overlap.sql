-- Earlier runs of the same job, and what is decided about a run because of them.

-- name: find_unvouched :many
-- Which of these runs cannot simply go: where the run before it is not over, or says nothing about those before
-- that, or something waits in the job's line, or will because it was missed. Most of the time nothing comes back.
-- A bound from both sides lets all partitions but one or two drop out; what was not found within them is asked for
-- again with a lower one.
-- Scatter: the runs of one publishing, a probe of an index for each
-- Index: runs_job_idx, parcels_line_idx
-- Returns: id uuid, earlier uuid
SELECT wanted.id, earlier.id AS earlier
  FROM unnest(:shards::smallint[], :ids::uuid[], :jobs::uuid[]) AS wanted (shard, id, job_id)
  LEFT JOIN LATERAL (
    SELECT runs.id, runs.state, runs.overlap, runs.moved, runs.first_started_at FROM betimes.runs
     WHERE runs.shard = wanted.shard AND runs.job_id = wanted.job_id AND runs.id < wanted.id
       AND runs.id >= :low::uuid AND runs.id < :high::uuid
     ORDER BY runs.id DESC LIMIT 1) AS earlier ON true
 WHERE (earlier.state >= 4 AND earlier.overlap > 0 AND NOT earlier.moved AND earlier.first_started_at IS NOT NULL) IS NOT TRUE
    -- The limit keeps it a probe for each; without it, all parcels of the shard would be read once.
    OR (SELECT true FROM betimes.parcels
         WHERE parcels.shard = wanted.shard AND parcels.line = wanted.job_id AND parcels.line IS NOT NULL LIMIT 1)
    OR (SELECT true FROM betimes.gaps WHERE gaps.shard = wanted.shard AND gaps.job_id = wanted.job_id LIMIT 1);

-- name: find_earlier :many
-- The newest runs of some jobs below a bound each, newest first, a bounded number; `ids` number the questions. Undecided
-- is what waits for its own verdict; later is what has no say yet: its time has not come, or somebody has to approve it.
-- Scatter: the runs of one publishing, a probe of an index for each
-- Index: runs_job_idx
-- Returns: id uuid, earlier uuid, state int2, overlap int2, started bool, moved bool, undecided bool, later bool, blocked_by uuid
SELECT wanted.id, earlier.id AS earlier, earlier.state, earlier.overlap, earlier.started, earlier.moved,
       coalesce(parcel.held = 2, false) AS undecided,
       coalesce(parcel.held = 3 OR (parcel.held = 2 AND parcel.visible_at > :now::timestamptz), false) AS later,
       earlier.blocked_by
  FROM unnest(:shards::smallint[], :ids::uuid[], :jobs::uuid[], :uppers::uuid[]) AS wanted (shard, id, job_id, below)
 CROSS JOIN LATERAL (
    SELECT runs.id, runs.state, runs.overlap, runs.moved, runs.first_started_at IS NOT NULL AS started, runs.blocked_by
      FROM betimes.runs
     WHERE runs.shard = wanted.shard AND runs.job_id = wanted.job_id AND runs.id < wanted.below
     ORDER BY runs.id DESC LIMIT :most::integer) AS earlier
  LEFT JOIN LATERAL (
    -- A parcel that waits for its verdict or approval is named after its run, unless the run was moved.
    SELECT parcels.held, parcels.visible_at FROM betimes.parcels
     WHERE earlier.state < 4 AND parcels.shard = wanted.shard AND parcels.id = earlier.id AND parcels.held IN (2, 3)
    UNION ALL
    SELECT parcels.held, parcels.visible_at FROM betimes.parcels
     WHERE earlier.state < 4 AND earlier.moved AND parcels.shard = wanted.shard AND parcels.line = wanted.job_id
       AND parcels.line IS NOT NULL AND parcels.held = 2 AND parcels.run_ids[1] = earlier.id
    LIMIT 1) AS parcel ON true;

-- name: read_blockers :many
-- The runs for whose sake others were skipped.
-- Scatter: the runs of one publishing, each key names its shard
-- Index: runs_pkey
-- Returns: id uuid, state int2, overlap int2, started bool
SELECT runs.id, runs.state, runs.overlap, runs.first_started_at IS NOT NULL AS started
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  JOIN betimes.runs ON runs.shard = wanted.shard AND runs.id = wanted.id AND runs.id >= :low::uuid AND runs.id <= :high::uuid;

-- name: read_lines :many
-- What stands in the lines of some jobs and is not over, best rank first, a bounded number of each; what somebody has to
-- approve first does not stand there yet.
-- Scatter: the jobs of one publishing, a probe of an index for each
-- Index: parcels_line_idx
-- Returns: line uuid, parcel_id uuid, run_id uuid, held int2, leased bool, state int2, visible_at timestamptz
SELECT wanted.job_id AS line, standing.parcel_id, standing.run_id, standing.held, standing.leased, standing.state,
       standing.visible_at
  FROM unnest(:shards::smallint[], :jobs::uuid[]) AS wanted (shard, job_id)
 CROSS JOIN LATERAL (
    SELECT parcels.id AS parcel_id, runs.id AS run_id, parcels.held, parcels.worker_id IS NOT NULL AS leased, runs.state,
           parcels.visible_at
      FROM betimes.parcels
      JOIN betimes.runs ON runs.shard = wanted.shard AND runs.id = parcels.run_ids[1]
     WHERE parcels.shard = wanted.shard AND parcels.line = wanted.job_id AND parcels.line IS NOT NULL
       AND parcels.held <> 3 AND runs.state < 4
     ORDER BY parcels.rank LIMIT :most::integer) AS standing;

-- name: skip_runs :many
-- End runs because of an earlier one, and say which.
-- Scatter: the runs of one publishing, each key names its shard
-- Index: runs_pkey
-- Guard: only rows that are not over; the caller holds their parcels, or has not made them yet
-- Returns: shard int2, id uuid, tenant_id uuid, job_id uuid, fire_at timestamptz, revision int4, trigger int2, queue text, handler text, attempt int2
UPDATE betimes.runs
   SET state = 7, finished_at = :now::timestamptz, reason = 'OVERLAP_SKIPPED', blocked_by = skipped.blocker
  FROM unnest(:shards::smallint[], :runs::uuid[], :blockers::uuid[]) AS skipped (shard, id, blocker)
 WHERE runs.shard = skipped.shard AND runs.id = skipped.id AND runs.id = ANY (:runs::uuid[])
   AND runs.id >= :low::uuid AND runs.id <= :high::uuid AND runs.state < 4
RETURNING runs.shard, runs.id, runs.tenant_id, runs.job_id, runs.fire_at, runs.revision, runs.trigger, runs.queue, runs.handler, runs.attempt;

-- name: blame_run :exec
-- Say in favour of which run others were asked to end, or ended.
-- Index: runs_pkey
UPDATE betimes.runs SET blocked_by = :blocker::uuid
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid
   AND reason = 'OVERLAP_CANCELLED';

-- name: find_verdicts_due :many
-- When the next verdict is due in each of some shards.
-- Scatter: one probe of an index per shard
-- Index: parcels_held_idx
-- Returns: shard int2, visible_at timestamptz
SELECT wanted.shard, next.visible_at
  FROM unnest(:shards::smallint[]) AS wanted (shard)
 CROSS JOIN LATERAL (
    SELECT parcels.visible_at FROM betimes.parcels
     WHERE parcels.shard = wanted.shard AND parcels.held = 2 AND parcels.held > 0
     ORDER BY parcels.visible_at LIMIT 1) AS next;

-- name: hold_for_verdict :many
-- Parcels of some shards whose verdict is due, oldest first in each, a bounded number of each, locked.
-- Scatter: one walk along an index per shard
-- Index: parcels_held_idx
-- Guard: the row locks; whoever cancels or expires a run of theirs at the same time has won or waits
-- Returns: shard int2, id uuid, tenant_id uuid, queue text, visible_at timestamptz, fair int2, run_id uuid
SELECT wanted.shard, due.*
  FROM unnest(:shards::smallint[]) AS wanted (shard)
 CROSS JOIN LATERAL (
    SELECT parcels.id, parcels.tenant_id, parcels.queue, parcels.visible_at, parcels.fair, parcels.run_ids[1] AS run_id
      FROM betimes.parcels
     WHERE parcels.shard = wanted.shard AND parcels.held = 2 AND parcels.held > 0 AND parcels.visible_at <= :now::timestamptz
     ORDER BY parcels.visible_at LIMIT :most::integer
       FOR UPDATE) AS due;

-- name: read_bound_runs :many
-- Runs that wait for a verdict and are not over.
-- Scatter: each key names its shard
-- Index: runs_pkey
-- Returns: id uuid, job_id uuid, overlap int2, moved bool
SELECT runs.id, runs.job_id, runs.overlap, runs.moved
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  JOIN betimes.runs ON runs.shard = wanted.shard AND runs.id = wanted.id AND runs.id >= :low::uuid AND runs.id <= :high::uuid
   AND runs.state < 4;

-- name: let_through :exec
-- Offer parcels to workers whose verdict was to go or to stand in line.
-- Scatter: each key names its shard
-- Index: parcels_pkey
-- Guard: the caller has locked them, held as they were
UPDATE betimes.parcels SET held = 0, held_at = NULL
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS passed (shard, id)
 WHERE parcels.shard = passed.shard AND parcels.id = passed.id;

-- name: delete_judged :exec
-- Take parcels out of the queue whose run was skipped, or ended while it was held.
-- Scatter: each key names its shard
-- Index: parcels_pkey
-- Guard: the caller has locked them, held as they were
DELETE FROM betimes.parcels USING unnest(:shards::smallint[], :ids::uuid[]) AS gone (shard, id)
 WHERE parcels.shard = gone.shard AND parcels.id = gone.id;
