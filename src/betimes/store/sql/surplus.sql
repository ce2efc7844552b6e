-- What was leased and is too heavy to be handed out in one answer.

-- name: find_surplus :many
-- Which of these leased runs are beyond what one answer may weigh, by their payloads; one of a job counts once. Lengths are
-- known without reading what they are about.
-- Scatter: the runs of one request, each by its primary key
-- Index: runs_pkey, jobs_pkey
-- Returns: id uuid
WITH sized AS (
    SELECT runs.id, wanted.place,
           CASE WHEN runs.payload IS NOT NULL THEN octet_length(runs.payload)
                WHEN row_number() OVER (PARTITION BY runs.job_id ORDER BY wanted.place) = 1 THEN octet_length(jobs.payload)
           END AS bytes
      FROM unnest(:shards::smallint[], :ids::uuid[]) WITH ORDINALITY AS wanted (shard, id, place)
      JOIN betimes.runs ON runs.shard = wanted.shard AND runs.id = wanted.id
      LEFT JOIN betimes.jobs ON jobs.shard = runs.shard AND jobs.id = runs.job_id
     WHERE runs.id >= :low::uuid
)
SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY place) AS before FROM sized) AS weighed WHERE before > :most::bigint;

-- name: put_back_surplus :exec
-- Put leased runs back that were never handed out, as if nobody had leased them. The caller leased their parcels in this
-- transaction.
-- Scatter: the parcels of one request, each by its primary key
-- Index: parcels_pkey
-- Guard: the caller holds the parcels; whoever leases the rest has a higher fence
-- Published: the rest was in the parcel it is split from
WITH split AS MATERIALIZED (
    SELECT parcels.shard, parcels.id, ARRAY(SELECT run FROM unnest(parcels.run_ids) AS run WHERE run = ANY (:gone::uuid[])) AS gone
      FROM unnest(:shards::smallint[], :ids::uuid[]) AS held (shard, id)
      JOIN betimes.parcels ON parcels.shard = held.shard AND parcels.id = held.id
), rest AS (
    INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries, run_ids,
                                 handler, gate, when_full, line, rate_key)
    SELECT parcels.shard, gen_random_uuid(), tenant_id, queue, priority, lane, fair, rank, visible_at, fence, deliveries - 1,
           split.gone, handler, gate, when_full, line, rate_key
      FROM split JOIN betimes.parcels ON parcels.shard = split.shard AND parcels.id = split.id
), emptied AS (
    DELETE FROM betimes.parcels USING split
     WHERE parcels.shard = split.shard AND parcels.id = split.id AND cardinality(parcels.run_ids) = cardinality(split.gone)
)
UPDATE betimes.parcels
   SET run_ids = ARRAY(SELECT run FROM unnest(parcels.run_ids) AS run WHERE run <> ALL (split.gone))
  FROM split
 WHERE parcels.shard = split.shard AND parcels.id = split.id AND cardinality(parcels.run_ids) > cardinality(split.gone);
