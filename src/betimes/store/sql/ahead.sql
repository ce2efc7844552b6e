-- What jobs have before them, as their runs say: `next_fire_at` of a job is only where its planner goes on.

-- name: find_ahead :many
-- The first fire of some jobs that is planned from an instant on and not over, and those from there on that are.
-- Scatter: a page of jobs lies in many shards, each key names its shard
-- Index: runs_job_idx
-- Returns: id uuid, fire_at timestamptz, over _timestamptz
SELECT wanted.id, planned.fire_at, over.fires AS over
  FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
  LEFT JOIN LATERAL (
    SELECT runs.fire_at FROM betimes.runs
     WHERE runs.shard = wanted.shard AND runs.job_id = wanted.id AND runs.id >= :low::uuid AND runs.state < 4
       AND runs.trigger = 0
     ORDER BY runs.id LIMIT 1) AS planned ON true
  LEFT JOIN LATERAL (
    SELECT array_agg(skipped.fire_at) AS fires FROM (
        SELECT runs.fire_at FROM betimes.runs
         WHERE planned.fire_at IS NULL AND runs.shard = wanted.shard AND runs.job_id = wanted.id AND runs.id >= :low::uuid
           AND runs.state >= 4 AND runs.trigger = 0
         ORDER BY runs.id LIMIT :most::integer) AS skipped) AS over ON true
 WHERE planned.fire_at IS NOT NULL OR over.fires IS NOT NULL;

-- name: find_unended :many
-- Which of some jobs have a fire among their newest runs that is not over.
-- Scatter: a page of jobs lies in many shards, each key names its shard
-- Index: runs_job_idx
-- Returns: id uuid
SELECT wanted.id FROM unnest(:shards::smallint[], :ids::uuid[]) AS wanted (shard, id)
 WHERE EXISTS (
    SELECT FROM (
        SELECT runs.state, runs.trigger FROM betimes.runs
         WHERE runs.shard = wanted.shard AND runs.job_id = wanted.id
         ORDER BY runs.id DESC LIMIT :most::integer) AS newest
     WHERE newest.state < 4 AND newest.trigger = 0);
