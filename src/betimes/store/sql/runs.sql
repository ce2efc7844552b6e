-- Executions: read one, read many, insert ad-hoc ones.

-- name: read_queues_of :many
-- Where runs wait, and how urgent they are.
-- Index: runs_pkey
-- Returns: id uuid, queue text, priority int2
SELECT id, queue, priority FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND id >= :low::uuid AND id <= :high::uuid;

-- name: read_specs :many
-- What to do for runs of jobs: the definition as it was at their revision.
-- Index: jobs_pkey
-- Returns: id uuid, revision int4, handler text, target text, payload bytea, options text, schedule text
SELECT jobs.id, jobs.revision, jobs.handler, jobs.target::text AS target, jobs.payload,
       jobs.options::text AS options, jobs.schedule::text AS schedule
  FROM betimes.jobs
  JOIN unnest(:ids::uuid[], :revisions::integer[]) AS wanted (id, revision)
    ON wanted.id = jobs.id AND wanted.revision = jobs.revision
 WHERE jobs.shard = :shard::smallint;

-- name: read_old_specs :many
-- The same for revisions that were replaced meanwhile.
-- Index: job_revisions_pkey
-- Returns: id uuid, revision int4, definition text, payload bytea
SELECT job_revisions.job_id AS id, job_revisions.revision, job_revisions.definition::text AS definition,
       job_revisions.payload
  FROM betimes.job_revisions
  JOIN unnest(:ids::uuid[], :revisions::integer[]) AS wanted (id, revision)
    ON wanted.id = job_revisions.job_id AND wanted.revision = job_revisions.revision
 WHERE job_revisions.shard = :shard::smallint;

-- name: read_run :maybe
-- One run as it is stored.
-- Index: runs_pkey
-- Returns: id uuid, tenant_id uuid, job_id uuid, revision int4, state int2, trigger int2, priority int2, attempt int2, fence int4, queue text, handler text, due_at timestamptz, fire_at timestamptz, created_at timestamptz, first_started_at timestamptz, started_at timestamptz, finished_at timestamptz, cancel_at timestamptz, worker_id uuid, reason text, payload bytea, options text, result bytea, error text, fair int2, gate text, when_full int2, rate_key text, overlap int2, workflow_run_id uuid, node text
SELECT id, tenant_id, job_id, revision, state, trigger, priority, attempt, fence, queue, handler, due_at, fire_at,
       created_at, first_started_at, started_at, finished_at, cancel_at, worker_id, reason, payload, options::text AS options,
       result, error::text AS error, fair, gate, when_full, rate_key, overlap, workflow_run_id, node
  FROM betimes.runs WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: find_shards_unparcelled :many
-- In which of these shards a run should be in a parcel by now and is in none.
-- Scatter: one walk along an index per shard
-- Index: runs_pkey
-- Returns: shard int2
SELECT wanted.shard FROM unnest(:shards::smallint[], :lows::uuid[], :highs::uuid[]) AS wanted (shard, low, high)
 WHERE (SELECT true FROM betimes.runs
          LEFT JOIN (SELECT unnest(run_ids) AS run_id FROM betimes.parcels WHERE parcels.shard = wanted.shard) AS held
            ON held.run_id = runs.id
         WHERE runs.shard = wanted.shard AND runs.id >= wanted.low AND runs.id < wanted.high
           AND runs.id >= :low::uuid AND runs.id < :high::uuid AND runs.state < 4 AND held.run_id IS NULL
         LIMIT 1);

-- name: find_unparcelled :many
-- Runs that should be in a parcel by now and are in none: the sweeper's find, which must stay empty.
-- Index: runs_pkey
-- Guard: the caller keeps the shard to itself and asks for nothing beyond the cursor
-- Returns: id uuid, tenant_id uuid, due_at timestamptz, priority int2, queue text, fence int4, fair int2, gate text, when_full int2, rate_key text, job_id uuid, overlap int2, state int2, handler text
SELECT runs.id, runs.tenant_id, runs.due_at, runs.priority, runs.queue, runs.fence, runs.fair, runs.gate, runs.when_full,
       runs.rate_key, runs.job_id, runs.overlap, runs.state, runs.handler
  FROM betimes.runs
  LEFT JOIN (SELECT unnest(run_ids) AS run_id FROM betimes.parcels WHERE parcels.shard = :shard::smallint) AS held
    ON held.run_id = runs.id
 WHERE runs.shard = :shard::smallint AND runs.id >= :low::uuid AND runs.id < :high::uuid AND runs.state < 4
   AND held.run_id IS NULL
 ORDER BY runs.id LIMIT :most::integer;

-- name: read_unfinished :many
-- Which of these runs have not ended, and what they have cost so far.
-- Index: runs_pkey
-- Returns: id uuid, attempt int2, tenant_id uuid, job_id uuid, queue text, handler text
SELECT id, attempt, tenant_id, job_id, queue, handler FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state < 4;

-- name: find_ended :many
-- Those of some runs that are over.
-- Scatter: whoever waits for runs waits for those of any shard
-- Index: runs_pkey
-- Returns: id uuid
SELECT wanted.id
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
 CROSS JOIN LATERAL (
    SELECT state FROM betimes.runs WHERE runs.shard = wanted.shard AND runs.id = wanted.id
    -- One look by id for each, however many runs there are beside them.
    OFFSET 0) AS found
 WHERE found.state >= 4;
