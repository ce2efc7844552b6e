-- What is due by time and nobody asks for, over all shards at once.

-- name: find_errands :many
-- Which of these shards have a pause that has ended, an end to tell, a job to delete or a decision to carry out.
-- Scatter: four probes of an index per shard
-- Index: jobs_paused_until_idx, jobs_untold_idx, jobs_spent_idx, catchups_decided_idx
-- Returns: shard int2, resumes bool, tells bool, deletes bool, decided bool
SELECT found.shard, found.resumes, found.tells, found.deletes, found.decided
  FROM (SELECT wanted.shard,
               coalesce((SELECT true FROM betimes.jobs
                          WHERE jobs.shard = wanted.shard
                            AND jobs.paused_until <= coalesce(:now::timestamptz, statement_timestamp())
                          LIMIT 1), false) AS resumes,
               coalesce((SELECT true FROM betimes.jobs
                          WHERE jobs.shard = wanted.shard AND jobs.untold
                          LIMIT 1), false) AS tells,
               coalesce((SELECT true FROM betimes.jobs
                          WHERE jobs.shard = wanted.shard AND jobs.state = 3 AND jobs.after_completion = 1
                          LIMIT 1), false) AS deletes,
               coalesce((SELECT true FROM betimes.catchups
                          WHERE catchups.shard = wanted.shard AND catchups.state IN (2, 3) AND catchups.held > 0
                          LIMIT 1), false) AS decided
          FROM unnest(:shards::smallint[]) AS wanted (shard)) AS found
 WHERE found.resumes OR found.tells OR found.deletes OR found.decided;
