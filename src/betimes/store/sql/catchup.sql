-- Catching up: gaps that are to be settled, episodes, and late work that waits for approval.

-- name: insert_gaps :exec
-- Leave the missed fires of jobs for later, with the definition they were missed under.
-- Index: jobs_pkey
-- Guard: the primary key: the same gap is left once; the caller holds the jobs
INSERT INTO betimes.gaps (shard, job_id, from_at, until_at, tenant_id, revision, priority, completes, queue, handler, schedule, options)
SELECT :shard::smallint, jobs.id, missed.first, missed.last, jobs.tenant_id, jobs.revision, jobs.priority, missed.completes,
       jobs.queue, jobs.handler, jobs.schedule, jobs.options
  FROM unnest(:jobs::uuid[], :firsts::timestamptz[], :lasts::timestamptz[], :completes::boolean[])
       AS missed (id, first, last, completes)
  JOIN betimes.jobs ON jobs.shard = :shard::smallint AND jobs.id = missed.id
 WHERE true  -- so that no reader takes ON CONFLICT for the condition of the join
ON CONFLICT (shard, from_at, job_id) DO NOTHING;

-- name: find_shards_missed :many
-- In which of these shards a fire was planned between its cursor and an instant, and is not published.
-- Scatter: one probe of an index per shard
-- Index: runs_pkey
-- Returns: shard int2
SELECT wanted.shard FROM unnest(:shards::smallint[], :lows::uuid[]) AS wanted (shard, low)
 WHERE (SELECT true FROM betimes.runs
         WHERE runs.shard = wanted.shard AND runs.id >= wanted.low AND runs.id >= :low::uuid AND runs.id < :high::uuid
           AND runs.state = 0 AND runs.trigger = 0 LIMIT 1);

-- name: find_missed_jobs :many
-- Jobs with fires that were planned and that nobody came to publish, a bounded number. Not those that wait for the end
-- of their own run, and not what was planned under another definition: that runs as it is.
-- Index: runs_pkey
-- Returns: job_id uuid
SELECT DISTINCT missed.job_id FROM (
    SELECT runs.job_id FROM betimes.runs
      JOIN betimes.jobs ON jobs.shard = runs.shard AND jobs.id = runs.job_id
     WHERE runs.shard = :shard::smallint AND runs.id >= :low::uuid AND runs.id < :high::uuid
       AND runs.state = 0 AND runs.trigger = 0 AND NOT runs.moved AND runs.revision = jobs.revision
       AND jobs.state IN (0, 3) AND jobs.schedule ->> 'mode' IS DISTINCT FROM 'fixed_delay'
     ORDER BY runs.id LIMIT :most::integer) AS missed;

-- name: delete_missed_runs :many
-- Take back what was planned and not published in time, as if it had never been planned.
-- Index: runs_job_idx
-- Guard: the caller keeps the shard to itself and the span lies beyond the cursor, where no run in state 0 is in a parcel:
-- only the publisher, which moves the cursor, and the sweeper, which stays behind it, put runs in that state into parcels
-- Returns: job_id uuid, fire_at timestamptz
DELETE FROM betimes.runs USING betimes.jobs
 WHERE runs.shard = :shard::smallint AND runs.id >= :low::uuid AND runs.id < :high::uuid AND runs.job_id = ANY (:jobs::uuid[])
   AND runs.state = 0 AND runs.trigger = 0 AND NOT runs.moved
   AND jobs.shard = :shard::smallint AND jobs.id = runs.job_id AND jobs.revision = runs.revision
RETURNING runs.job_id, runs.fire_at;

-- name: turn_jobs_back :many
-- Jobs whose planned fires were taken back: those that are behind anyway begin again with the first of them.
-- Index: jobs_pkey
-- Guard: the caller keeps the shard to itself
-- Returns: id uuid, behind bool
UPDATE betimes.jobs
   SET fires = greatest(jobs.fires - missed.fires, 0),
       next_fire_at = CASE WHEN jobs.next_fire_at <= :edge::timestamptz THEN least(jobs.next_fire_at, missed.first)
                           ELSE jobs.next_fire_at END
  FROM unnest(:ids::uuid[], :firsts::timestamptz[], :fires::bigint[]) AS missed (id, first, fires)
 WHERE jobs.shard = :shard::smallint AND jobs.id = missed.id
RETURNING jobs.id, coalesce(jobs.next_fire_at <= :edge::timestamptz, false) AS behind;

-- name: find_shards_behind :many
-- Which of these shards have a gap.
-- Scatter: one probe of an index per shard
-- Returns: shard int2
SELECT wanted.shard FROM unnest(:shards::smallint[]) AS wanted (shard)
 WHERE EXISTS (SELECT FROM betimes.gaps WHERE gaps.shard = wanted.shard);

-- name: read_gaps :many
-- Gaps of one shard, the oldest first.
-- Index: gaps_pkey
-- Returns: job_id uuid, tenant_id uuid, revision int4, from_at timestamptz, fires int8, queue text, priority int2, handler text, schedule text, options text, until_at timestamptz, completes bool
SELECT job_id, tenant_id, revision, from_at, 0::bigint AS fires, queue, priority, handler, schedule::text AS schedule,
       options::text AS options, until_at, completes
  FROM betimes.gaps WHERE shard = :shard::smallint
 ORDER BY from_at, job_id LIMIT :most::integer;

-- name: delete_gaps :many
-- Take gaps that are settled in this transaction; what somebody has settled before does not come back.
-- Index: gaps_job_idx
-- Guard: the row itself: whoever deletes it settles it
-- Returns: job_id uuid, from_at timestamptz
DELETE FROM betimes.gaps USING unnest(:jobs::uuid[], :firsts::timestamptz[]) AS settled (job_id, from_at)
 WHERE gaps.shard = :shard::smallint AND gaps.job_id = settled.job_id AND gaps.from_at = settled.from_at
RETURNING gaps.job_id, gaps.from_at;

-- name: find_accounted :many
-- Fires of jobs, each job from a first through a last instant, that have a run or a decision: nobody decides about them again.
-- A decision stands under its first fire. One that begins before a span may reach into it, after the clock was set back.
-- Index: runs_job_idx, decisions_pkey
-- Guard: the caller holds the jobs
-- Returns: job_id uuid, first timestamptz, fire_at timestamptz, until_at timestamptz
SELECT span.job_id, span.first, found.fire_at, found.until_at
  FROM unnest(:jobs::uuid[], :firsts::timestamptz[], :lasts::timestamptz[], :lows::uuid[]) AS span (job_id, first, last, low)
 CROSS JOIN LATERAL (
    SELECT runs.fire_at, NULL::timestamptz AS until_at FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.job_id = span.job_id AND runs.id >= span.low
       AND runs.fire_at >= span.first AND runs.fire_at <= span.last AND runs.trigger IN (0, 3)
    UNION ALL
    SELECT decisions.fire_at, coalesce(decisions.until_at, decisions.fire_at) FROM betimes.decisions
     WHERE decisions.shard = :shard::smallint AND decisions.job_id = span.job_id
       AND decisions.fire_at >= span.first AND decisions.fire_at <= span.last
    UNION ALL
    SELECT before.fire_at, before.until_at FROM (
        SELECT decisions.fire_at, decisions.until_at FROM betimes.decisions
         WHERE decisions.shard = :shard::smallint AND decisions.job_id = span.job_id AND decisions.fire_at < span.first
         ORDER BY decisions.fire_at DESC LIMIT 1) AS before
     WHERE before.until_at >= span.first) AS found;

-- name: settle_jobs :many
-- Count the late fires of jobs, and complete those that have nothing else left. Missing and cancelled ones get none.
-- Index: jobs_pkey
-- Guard: the row locks: a verb that ends a job comes before us, and we see it, or after us, and finds the runs
-- Returns: id uuid
UPDATE betimes.jobs
   SET fires = jobs.fires + late.fires,
       state = CASE WHEN late.completes AND jobs.revision = late.revision AND jobs.next_fire_at IS NULL AND jobs.state = 0
                    THEN 3 ELSE jobs.state END
  FROM unnest(:ids::uuid[], :revisions::integer[], :fires::bigint[], :completes::boolean[])
       AS late (id, revision, fires, completes)
 WHERE jobs.shard = :shard::smallint AND jobs.id = late.id AND jobs.state <> 4
RETURNING jobs.id;

-- name: find_jobs_left :many
-- Which of these jobs are still there.
-- Index: jobs_pkey
-- Returns: id uuid
SELECT id FROM betimes.jobs WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]);

-- name: count_tenants_behind :one
-- How many tenants have something to catch up: gaps, or runs that become visible one after the other.
-- Scatter: tenants are spread over the shards
-- Returns: tenants int8
SELECT count(*)::bigint AS tenants FROM (
    SELECT tenant_id FROM betimes.catchups WHERE paced_through > coalesce(:now::timestamptz, statement_timestamp())
    UNION
    SELECT tenant_id FROM betimes.gaps) AS behind;

-- name: read_catchup_quotas :many
-- What tenants are allowed to catch up, as far as it differs from the settings.
-- Index: tenants_pkey
-- Returns: id uuid, per_second float8, unapproved int8
SELECT id, (quotas ->> 'catchup_per_second')::double precision AS per_second, (quotas ->> 'catchup_runs')::bigint AS unapproved
  FROM betimes.tenants WHERE id = ANY (:tenants::uuid[]);

-- name: lock_catchup :maybe
-- The episode of a tenant that is not decided yet, held until the transaction ends.
-- Index: catchups_current_idx
-- Guard: the row lock: whoever adds to it or decides about it waits
-- Returns: id uuid, found_at timestamptz, runs int8, state int2
SELECT id, found_at, runs, state FROM betimes.catchups
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND state < 2
   FOR UPDATE;

-- name: close_catchup :exec
-- An episode to which nothing was added for long is over.
-- Index: catchups_pkey
UPDATE betimes.catchups SET state = 4 WHERE shard = :shard::smallint AND id = :id::uuid AND state = 0;

-- name: insert_catchup :maybe
-- Begin an episode, unless somebody has begun one for the tenant.
-- Guard: one undecided episode per tenant
-- Returns: id uuid
INSERT INTO betimes.catchups (shard, id, tenant_id, opened_at, found_at, paced_through, first_fire_at, last_fire_at, per_second)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :now::timestamptz, :now::timestamptz, :paced_through::timestamptz,
        :first_fire_at::timestamptz, :last_fire_at::timestamptz, :per_second::double precision)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_paced_through :one
-- Up to when the late runs of a tenant become visible, over all its episodes.
-- Index: catchups_tenant_idx
-- Scatter: the episodes of a tenant, all in the shard of its digest
-- Returns: paced_through timestamptz
SELECT max(paced_through) AS paced_through FROM betimes.catchups WHERE tenant_id = :tenant::uuid;

-- name: extend_catchup :exec
-- Add late runs to an episode the caller holds.
-- Index: catchups_pkey
UPDATE betimes.catchups
   SET runs = runs + :runs::bigint, held = held + :held::bigint, found_at = :now::timestamptz,
       paced_through = :paced_through::timestamptz, per_second = :per_second::double precision,
       state = CASE WHEN :held::bigint > 0 THEN 1 ELSE state END,
       first_fire_at = least(first_fire_at, :first_fire_at::timestamptz),
       last_fire_at = greatest(last_fire_at, :last_fire_at::timestamptz)
 WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: insert_late_parcels :exec
-- Put late work into the queue, in the transaction that inserted its runs; with an episode it waits for approval.
-- In a queue without fairness all keys stand in one row.
-- Guard: the caller's transaction; it inserts a run and its parcel together or not at all
-- Published: their runs were inserted in this transaction, in state 1, which no publisher reads
WITH contents AS (
    SELECT number, array_agg(run_id ORDER BY position) AS run_ids
      FROM unnest(:numbers::integer[], :runs::uuid[]) WITH ORDINALITY AS run (number, run_id, position)
     GROUP BY number
)
INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, rank, visible_at, run_ids, episode, held, held_at,
                             fair, when_full, gate, line, rate_key, handler)
SELECT :shard::smallint, parcel.id, parcel.tenant_id, parcel.queue, parcel.priority, parcel.lane, parcel.rank,
       parcel.visible_at, contents.run_ids, parcel.episode,
       CASE WHEN parcel.episode IS NULL THEN parcel.held ELSE 3 END,
       CASE WHEN parcel.episode IS NOT NULL OR parcel.held > 0 THEN :now::timestamptz END,
       CASE WHEN parcel.fair > 0 AND EXISTS (
            SELECT FROM betimes.queues
             WHERE queues.tenant_id = parcel.tenant_id AND queues.name = parcel.queue AND queues.fairness = 'none')
            THEN 0 ELSE parcel.fair END, parcel.when_full, parcel.gate, parcel.line, parcel.rate_key, parcel.handler
  FROM unnest(:ids::uuid[], :tenants::uuid[], :queues::text[], :priorities::smallint[], :lanes::smallint[],
              :ranks::timestamptz[], :visible::timestamptz[], :episodes::uuid[],
              :fairs::smallint[], :whens::smallint[], :gates::text[], :lines::uuid[], :rate_keys::text[],
              :holds::smallint[], :handlers::text[])
       WITH ORDINALITY AS parcel (id, tenant_id, queue, priority, lane, rank, visible_at, episode, fair, when_full, gate, line,
                                  rate_key, held, handler, number)
  JOIN contents ON contents.number = parcel.number;

-- name: list_catchups :many
-- Episodes of a tenant, newest first.
-- Scatter: all episodes of a tenant lie in the shard of its digest
-- Index: catchups_tenant_idx
-- Returns: id uuid, tenant_id uuid, opened_at timestamptz, found_at timestamptz, paced_through timestamptz, first_fire_at timestamptz, last_fire_at timestamptz, decided_at timestamptz, runs int8, held int8, released int8, dropped int8, per_second float8, state int2, decided_by text, reason text
SELECT id, tenant_id, opened_at, found_at, paced_through, first_fire_at, last_fire_at, decided_at, runs, held, released, dropped,
       per_second, state, decided_by, reason
  FROM betimes.catchups WHERE tenant_id = :tenant::uuid AND id < :before::uuid
 ORDER BY id DESC LIMIT :most::integer;

-- name: hold_catchup :maybe
-- One episode, held until the transaction ends.
-- Index: catchups_pkey
-- Guard: the row lock: the planner that adds to it waits
-- Returns: id uuid, tenant_id uuid, opened_at timestamptz, found_at timestamptz, paced_through timestamptz, first_fire_at timestamptz, last_fire_at timestamptz, decided_at timestamptz, runs int8, held int8, released int8, dropped int8, per_second float8, state int2, decided_by text, reason text
SELECT id, tenant_id, opened_at, found_at, paced_through, first_fire_at, last_fire_at, decided_at, runs, held, released, dropped,
       per_second, state, decided_by, reason
  FROM betimes.catchups WHERE shard = :shard::smallint AND id = :id::uuid
   FOR UPDATE;

-- name: read_catchup :maybe
-- One episode.
-- Index: catchups_pkey
-- Returns: id uuid, tenant_id uuid, opened_at timestamptz, found_at timestamptz, paced_through timestamptz, first_fire_at timestamptz, last_fire_at timestamptz, decided_at timestamptz, runs int8, held int8, released int8, dropped int8, per_second float8, state int2, decided_by text, reason text
SELECT id, tenant_id, opened_at, found_at, paced_through, first_fire_at, last_fire_at, decided_at, runs, held, released, dropped,
       per_second, state, decided_by, reason
  FROM betimes.catchups WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: count_held_by_queue :many
-- What of an episode waits for approval, by queue.
-- Scatter: late work lies in every shard
-- Index: parcels_episode_idx
-- Returns: queue text, runs int8
SELECT queue, sum(cardinality(run_ids))::bigint AS runs
  FROM betimes.parcels WHERE episode = :episode::uuid AND held = 3
 GROUP BY queue ORDER BY 2 DESC, 1 LIMIT :most::integer;

-- name: count_held_by_job :many
-- What of an episode waits for approval, by job, those with most of it first.
-- Scatter: late work lies in every shard
-- Index: parcels_episode_idx
-- Returns: job_id uuid, runs int8, first_fire_at timestamptz, last_fire_at timestamptz
SELECT runs.job_id, count(*)::bigint AS runs, min(runs.fire_at) AS first_fire_at, max(runs.fire_at) AS last_fire_at
  FROM betimes.parcels CROSS JOIN LATERAL unnest(parcels.run_ids) AS late (run_id)
  JOIN betimes.runs ON runs.shard = parcels.shard AND runs.id = late.run_id
 WHERE parcels.episode = :episode::uuid AND parcels.held = 3
 GROUP BY runs.job_id ORDER BY 2 DESC, 1 LIMIT :most::integer;

-- name: decide_catchup :maybe
-- Approve or drop what waits; carried out afterwards, a bounded number at a time.
-- Index: catchups_pkey
-- Guard: only an episode that waits
-- Returns: id uuid
UPDATE betimes.catchups
   SET state = :state::smallint, decided_at = :now::timestamptz, decided_by = :actor::text, reason = :reason::text
 WHERE shard = :shard::smallint AND id = :id::uuid AND state = 1
RETURNING id;

-- name: find_decided :many
-- Episodes of one shard that were decided and not carried out yet.
-- Index: catchups_decided_idx
-- Returns: id uuid
SELECT id FROM betimes.catchups WHERE shard = :shard::smallint AND state IN (2, 3) AND held > 0
 ORDER BY id LIMIT :most::integer;

-- name: lock_held_parcels :many
-- The next parcels of an episode that wait for approval, oldest first, locked.
-- Scatter: late work lies in every shard
-- Index: parcels_episode_idx
-- Guard: the caller holds the episode; nobody leases what is held
-- Returns: shard int2, id uuid, tenant_id uuid, queue text, priority int2, visible_at timestamptz, run_ids _uuid
SELECT shard, id, tenant_id, queue, priority, visible_at, run_ids FROM betimes.parcels
 WHERE episode = :episode::uuid AND held = 3
 ORDER BY shard, rank, id LIMIT :most::integer
   FOR UPDATE;

-- name: release_parcels :exec
-- Offer parcels that were approved, each at its turn; those that stand in the line of a job wait for their verdict.
-- Scatter: late work lies in every shard
-- Guard: only what is still held for approval
UPDATE betimes.parcels
   SET held = CASE WHEN line IS NULL THEN 0 ELSE 2 END, held_at = CASE WHEN line IS NULL THEN NULL ELSE held_at END,
       episode = NULL, visible_at = free.visible_at, rank = free.rank
  FROM unnest(:shards::smallint[], :ids::uuid[], :visible::timestamptz[], :ranks::timestamptz[])
       AS free (shard, id, visible_at, rank)
 WHERE parcels.shard = free.shard AND parcels.id = free.id AND parcels.held = 3;

-- name: drop_late_runs :many
-- Delete late runs that nobody wants; they were never offered, so nobody has seen them. What is over stays.
-- Index: runs_pkey
-- Guard: the caller has locked the parcels that hold them
-- Returns: job_id uuid, fire_at timestamptz, tenant_id uuid, revision int4
DELETE FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state = 1
RETURNING job_id, fire_at, tenant_id, revision;

-- name: carry_out_catchup :exec
-- Note how far a decision is carried out.
-- Index: catchups_pkey
UPDATE betimes.catchups
   SET held = greatest(0, held - :runs::bigint), released = released + :released::bigint, dropped = dropped + :dropped::bigint,
       paced_through = :paced_through::timestamptz
 WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: end_catchup :exec
-- Nothing of an episode waits any more.
-- Index: catchups_pkey
UPDATE betimes.catchups SET held = 0 WHERE shard = :shard::smallint AND id = :id::uuid;
