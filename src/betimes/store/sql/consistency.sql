-- What cannot be, looked for: accounts of fires, and parcels with their runs. Read only, a bounded number of rows each,
-- in statements of their own: nothing is locked, and no snapshot lasts.

-- name: list_decided :many
-- Decisions about fires of one shard since an instant, page by page. Not those about occurrences that DST or a calendar
-- took away: they are about no fire, and may lie amid others. The one that follows about the same job comes along.
-- Index: decisions_pkey
-- Returns: job_id uuid, fire_at timestamptz, until_at timestamptz, fires int8, revision int4, code text, next_at timestamptz, next_code text, schedule text
SELECT decisions.job_id, decisions.fire_at, coalesce(decisions.until_at, decisions.fire_at) AS until_at, decisions.fires,
       decisions.revision, decisions.code, following.fire_at AS next_at, following.code AS next_code,
       CASE WHEN decisions.until_at IS NOT NULL THEN jobs.schedule::text END AS schedule
  FROM betimes.decisions
  LEFT JOIN betimes.jobs ON jobs.shard = :shard::smallint AND jobs.id = decisions.job_id AND jobs.revision = decisions.revision
  LEFT JOIN LATERAL (
    SELECT later.fire_at, later.code FROM betimes.decisions AS later
     WHERE later.shard = :shard::smallint AND later.job_id = decisions.job_id AND later.fire_at > decisions.fire_at
       AND later.fire_at <= coalesce(decisions.until_at, decisions.fire_at) AND later.code <> ALL (:denied::text[])
     ORDER BY later.fire_at LIMIT 1) AS following ON true
 WHERE decisions.shard = :shard::smallint AND decisions.fire_at >= :since::timestamptz
   AND (decisions.job_id, decisions.fire_at) > (:after_job::uuid, :after_at::timestamptz)
   AND decisions.code <> ALL (:denied::text[])
 ORDER BY decisions.job_id, decisions.fire_at LIMIT :most::integer;

-- name: find_decided_runs :many
-- For some decisions of one shard, a scheduled run of one of their fires that was not skipped.
-- Index: runs_job_idx
-- Returns: number int8, run_id uuid, fire_at timestamptz
SELECT decided.number, found.id AS run_id, found.fire_at
  FROM unnest(:jobs::uuid[], :firsts::timestamptz[], :lasts::timestamptz[], :lows::uuid[], :highs::uuid[])
       WITH ORDINALITY AS decided (job_id, first, last, low, high, number)
 CROSS JOIN LATERAL (
    SELECT runs.id, runs.fire_at FROM betimes.runs
     WHERE runs.shard = :shard::smallint AND runs.job_id = decided.job_id AND runs.id >= decided.low AND runs.id < decided.high
       AND runs.fire_at >= decided.first AND runs.fire_at <= decided.last AND runs.trigger = 0 AND runs.state <> 7
     ORDER BY runs.id LIMIT 1) AS found;

-- name: list_parcelled :many
-- Runs in the parcels of one shard that cannot be there, page by page: in another parcel of the page as well, gone although
-- long visible, or planned and beyond the cursor. The last row of a page only says where it ended, and how much it held.
-- Index: parcels_pkey
-- Returns: parcel_id uuid, run_id uuid, gone bool, unpublished bool, twice bool, runs int8
WITH page AS MATERIALIZED (
    SELECT id, visible_at, run_ids FROM betimes.parcels
     WHERE shard = :shard::smallint AND id > :after::uuid ORDER BY id LIMIT :most::integer
), held AS (
    SELECT page.id, page.visible_at, run.run_id, count(*) OVER (PARTITION BY run.run_id) > 1 AS twice
      FROM page CROSS JOIN LATERAL unnest(page.run_ids) AS run (run_id)
), judged AS (
    SELECT held.id, held.run_id, held.twice, runs.id IS NULL AND held.visible_at < :settled::timestamptz AS gone,
           -- An id begins with the milliseconds of its due time.
           coalesce(runs.state = 0 AND ('x' || left(translate(runs.id::text, '-', ''), 12))::bit(48)::bigint
                                       > coalesce(floor(extract(epoch FROM shards.published_through) * 1000), -1),
                    false) AS unpublished
      FROM held JOIN betimes.shards ON shards.shard = :shard::smallint
      LEFT JOIN betimes.runs ON runs.shard = :shard::smallint AND runs.id = held.run_id
)
(SELECT id AS parcel_id, run_id, gone, unpublished, twice, NULL::bigint AS runs FROM judged
  WHERE gone OR unpublished OR twice ORDER BY id, run_id LIMIT :findings::integer)
UNION ALL
(SELECT (SELECT id FROM page ORDER BY id DESC LIMIT 1), NULL, NULL, NULL, NULL, (SELECT count(*) FROM held));
