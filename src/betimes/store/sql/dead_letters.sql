-- Runs that are out of attempts: listed, grouped, redriven, discarded.

-- name: list_dead_letters :many
-- Dead letters of a tenant in the order of their deaths, page by page.
-- Scatter: a tenant's runs lie in every shard
-- Index: dead_letters_tenant_idx
-- Returns: shard int2, run_id uuid, tenant_id uuid, job_id uuid, dead_at timestamptz, resolved_at timestamptz, attempts int2, state int2, queue text, handler text, fingerprint text, reason text, error text, note text, assignee text
SELECT shard, run_id, tenant_id, job_id, dead_at, resolved_at, attempts, state, queue, handler, fingerprint, reason,
       error::text AS error, note, assignee
  FROM betimes.dead_letters
 WHERE tenant_id = :tenant::uuid AND state = :state::smallint
   AND (dead_at, run_id) > (:after_at::timestamptz, :after_run::uuid)
   AND (:fingerprint::text IS NULL OR fingerprint = :fingerprint::text)
   AND (:queue::text IS NULL OR queue = :queue::text)
   AND (:handler::text IS NULL OR handler = :handler::text)
   AND (:job::uuid IS NULL OR job_id = :job::uuid)
   AND (:finished_after::timestamptz IS NULL OR dead_at > :finished_after::timestamptz)
   AND (:finished_before::timestamptz IS NULL OR dead_at < :finished_before::timestamptz)
   AND (:text::text IS NULL OR error ? 'sealed' OR position(lower(:text::text) IN lower(error::text)) > 0)
   AND (:tags::text IS NULL OR EXISTS (
        SELECT FROM betimes.runs
         WHERE runs.shard = dead_letters.shard AND runs.id = dead_letters.run_id
           AND runs.options -> 'tags' @> :tags::text::jsonb))
 ORDER BY dead_at, run_id LIMIT :most::integer;

-- name: group_dead_letters :many
-- Open dead letters of a tenant by fingerprint and handler, the largest groups first.
-- Scatter: a tenant's runs lie in every shard
-- Returns: fingerprint text, handler text, letters int8, first_at timestamptz, last_at timestamptz, sample text
SELECT fingerprint, handler, count(*) AS letters, min(dead_at) AS first_at, max(dead_at) AS last_at,
       (array_agg(error::text ORDER BY dead_at DESC))[1] AS sample
  FROM betimes.dead_letters
 WHERE tenant_id = :tenant::uuid AND state = 0
 GROUP BY fingerprint, handler
 ORDER BY letters DESC, fingerprint LIMIT :most::integer;

-- name: read_dead_letter :maybe
-- One dead letter.
-- Index: dead_letters_pkey
-- Returns: shard int2, run_id uuid, tenant_id uuid, job_id uuid, dead_at timestamptz, resolved_at timestamptz, attempts int2, state int2, queue text, handler text, fingerprint text, reason text, error text, note text, assignee text
SELECT shard, run_id, tenant_id, job_id, dead_at, resolved_at, attempts, state, queue, handler, fingerprint, reason,
       error::text AS error, note, assignee
  FROM betimes.dead_letters WHERE shard = :shard::smallint AND run_id = :run::uuid;

-- name: read_attempts :many
-- The attempts of a run that did not succeed, in order.
-- Index: attempts_pkey
-- Returns: number int2, worker_id uuid, fence int4, started_at timestamptz, finished_at timestamptz, next_retry_at timestamptz, outcome int2, error text, http text
SELECT number, worker_id, fence, started_at, finished_at, next_retry_at, outcome, error::text AS error, http::text AS http
  FROM betimes.attempts WHERE shard = :shard::smallint AND run_id = :run::uuid
 ORDER BY number, fence LIMIT :most::integer;

-- name: resolve_dead_letters :many
-- Close open dead letters, as redriven (1) or as discarded (2).
-- Index: dead_letters_pkey
-- Guard: only open ones; as redriven only those whose run is there to be redriven
-- Returns: run_id uuid
UPDATE betimes.dead_letters
   SET state = :state::smallint, resolved_at = :now::timestamptz, note = coalesce(:note::text, note)
 WHERE shard = :shard::smallint AND run_id = ANY (:runs::uuid[]) AND state = 0
   AND (:state::smallint <> 1 OR EXISTS (SELECT FROM betimes.runs
                                          WHERE runs.shard = :shard::smallint AND runs.id = dead_letters.run_id))
RETURNING run_id;

-- name: annotate_dead_letter :maybe
-- Write a note on a dead letter, or give it to somebody; what is not given stays.
-- Index: dead_letters_pkey
-- Returns: run_id uuid
UPDATE betimes.dead_letters
   SET note = coalesce(:note::text, note), assignee = coalesce(:assignee::text, assignee)
 WHERE shard = :shard::smallint AND run_id = :run::uuid
RETURNING run_id;
