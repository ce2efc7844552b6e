-- Who may be in flight beside whom. What is in flight is counted from leased parcels, never kept as a number.

-- Order of locks, everywhere: parcels we hold (by shard and id), then limits (by tenant, kind and key), then parcels
-- that nobody holds, and those only where they are free (SKIP LOCKED). So nobody waits in a circle.

-- name: declare_limits :exec
-- Say how many runs of some concurrency keys may be in flight; the last word counts. Costs a look where it is known.
-- Index: limits_pkey
INSERT INTO betimes.limits AS limits (tenant_id, kind, key, max_inflight, used_at)
SELECT :tenant::uuid, 'key', said.key, said.most, coalesce(:now::timestamptz, statement_timestamp())
  FROM unnest(:keys::text[], :mosts::integer[]) AS said (key, most)
 WHERE NOT EXISTS (
    SELECT FROM betimes.limits AS known
     WHERE known.tenant_id = :tenant::uuid AND known.kind = 'key' AND known.key = said.key
       AND known.max_inflight IS NOT DISTINCT FROM said.most
       AND known.used_at > coalesce(:now::timestamptz, statement_timestamp()) - interval '1 hour')
 ORDER BY said.key
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET max_inflight = excluded.max_inflight, used_at = excluded.used_at;

-- name: ensure_limits :exec
-- Make the rows that are about to be locked; where there is one, what it says stays.
-- Index: limits_pkey
INSERT INTO betimes.limits AS limits (tenant_id, kind, key, max_inflight, used_at)
SELECT wanted.tenant_id, wanted.kind, wanted.key, wanted.most, coalesce(:now::timestamptz, statement_timestamp())
  FROM unnest(:tenants::uuid[], :kinds::text[], :keys::text[], :mosts::integer[]) AS wanted (tenant_id, kind, key, most)
 WHERE NOT EXISTS (
    SELECT FROM betimes.limits AS known
     WHERE known.tenant_id = wanted.tenant_id AND known.kind = wanted.kind AND known.key = wanted.key
       AND known.used_at > coalesce(:now::timestamptz, statement_timestamp()) - interval '1 hour')
 ORDER BY wanted.tenant_id, wanted.kind, wanted.key
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET used_at = excluded.used_at;

-- name: lock_limits :many
-- Lock the limits of some keys, in order: until the transaction ends nobody else is let in through them.
-- Index: limits_pkey
-- Guard: the row locks; whoever counts and lets in does it alone
-- Returns: tenant_id uuid, kind text, key text, most int4
SELECT held.tenant_id, held.kind, held.key,
       coalesce(held.max_inflight, (SELECT (settings ->> 'per_key_concurrency')::integer FROM betimes.queues
                                     WHERE queues.tenant_id = wanted.tenant_id AND queues.name = wanted.queue), 1) AS most
  -- Sorted before, and each found by its key: sorted afterwards, every limit of the tenant would be read for it.
  FROM (SELECT * FROM unnest(:tenants::uuid[], :kinds::text[], :keys::text[], :queues::text[])
               AS asked (tenant_id, kind, key, queue)
         ORDER BY tenant_id, kind, key) AS wanted
 CROSS JOIN LATERAL (
    SELECT limits.tenant_id, limits.kind, limits.key, limits.max_inflight FROM betimes.limits
     WHERE limits.tenant_id = wanted.tenant_id AND limits.kind = wanted.kind AND limits.key = wanted.key
       FOR UPDATE OF limits) AS held;

-- name: count_slots :many
-- How many parcels are in flight through each of some gates and lines. The caller holds their limits.
-- Scatter: the parcels of a concurrency key lie in every shard
-- Index: parcels_gate_slot_idx, parcels_line_slot_idx
-- Returns: number int8, slots int8
SELECT wanted.number,
       CASE WHEN wanted.line IS NULL
            THEN (SELECT count(*) FROM betimes.parcels
                   WHERE parcels.slot AND parcels.gate IS NOT NULL
                     AND parcels.tenant_id = wanted.tenant_id AND parcels.gate = wanted.gate)
            ELSE (SELECT count(*) FROM betimes.parcels
                   WHERE parcels.slot AND parcels.line IS NOT NULL
                     AND parcels.shard = wanted.shard AND parcels.line = wanted.line)
       END AS slots
  FROM unnest(:tenants::uuid[], :gates::text[], :shards::smallint[], :lines::uuid[]) WITH ORDINALITY
       AS wanted (tenant_id, gate, shard, line, number);

-- name: lock_gated :many
-- Lock parcels that were just leased, before their limits are: in the order in which a heartbeat locks them.
-- Scatter: one claim may lease from several shards
-- Index: parcels_pkey
-- Guard: worker and fence
-- Returns: shard int2, id uuid, rank timestamptz, slot bool
SELECT held.shard, held.id, held.rank, held.slot
  FROM (SELECT * FROM unnest(:shards::smallint[], :ids::uuid[], :fences::integer[]) AS asked (shard, id, fence)
         ORDER BY shard, id) AS leased
 CROSS JOIN LATERAL (
    SELECT parcels.shard, parcels.id, parcels.rank, parcels.slot FROM betimes.parcels
     WHERE parcels.shard = leased.shard AND parcels.id = leased.id AND parcels.fence = leased.fence
       AND parcels.worker_id IS NOT DISTINCT FROM :worker::uuid
       FOR UPDATE OF parcels) AS held;

-- name: admit_parcels :exec
-- Let parcels in, or put them back as held: their delivery does not count. The caller holds them and their limits.
-- Scatter: one claim may lease from several shards
-- Index: parcels_pkey
-- Guard: the caller has locked them under worker and fence
UPDATE betimes.parcels
   SET slot = decided.admitted,
       worker_id = CASE WHEN decided.admitted THEN parcels.worker_id END,
       lease_until = CASE WHEN decided.admitted THEN parcels.lease_until END,
       deliveries = parcels.deliveries - (NOT decided.admitted)::integer,
       held = (NOT decided.admitted)::integer,
       held_at = CASE WHEN NOT decided.admitted THEN coalesce(:now::timestamptz, statement_timestamp()) END
  FROM unnest(:shards::smallint[], :ids::uuid[], :admitted::boolean[]) AS decided (shard, id, admitted)
 WHERE parcels.shard = decided.shard AND parcels.id = decided.id;

-- name: find_next_gated :many
-- The next held parcels of some concurrency keys, best rank first, but none whose line is taken.
-- Scatter: the parcels of a concurrency key lie in every shard
-- Index: parcels_gate_idx, parcels_line_slot_idx
-- Returns: shard int2, id uuid
SELECT next.shard, next.id
  FROM unnest(:tenants::uuid[], :gates::text[], :mosts::integer[]) AS freed (tenant_id, gate, most)
 CROSS JOIN LATERAL (
    SELECT waiting.shard, waiting.id FROM betimes.parcels AS waiting
     WHERE waiting.tenant_id = freed.tenant_id AND waiting.gate = freed.gate AND waiting.gate IS NOT NULL AND waiting.held = 1
       AND (waiting.line IS NULL OR NOT EXISTS (
            SELECT FROM betimes.parcels AS ahead
             WHERE ahead.slot AND ahead.line IS NOT NULL AND ahead.shard = waiting.shard AND ahead.line = waiting.line))
     ORDER BY waiting.rank LIMIT freed.most) AS next;

-- name: find_next_lined :many
-- The next held parcels of some lines, best rank first, but none whose concurrency key is taken.
-- Scatter: a concurrency key has its parcels in every shard
-- Index: parcels_line_idx
-- Returns: shard int2, id uuid
SELECT next.shard, next.id
  FROM unnest(:shards::smallint[], :lines::uuid[], :mosts::integer[]) AS freed (shard, line, most)
 CROSS JOIN LATERAL (
    SELECT waiting.shard, waiting.id FROM betimes.parcels AS waiting
     WHERE waiting.shard = freed.shard AND waiting.line = freed.line AND waiting.line IS NOT NULL AND waiting.held = 1
       AND (waiting.gate IS NULL OR (
            SELECT count(*) FROM betimes.parcels AS ahead
             WHERE ahead.slot AND ahead.gate IS NOT NULL AND ahead.tenant_id = waiting.tenant_id AND ahead.gate = waiting.gate)
           < coalesce((SELECT max_inflight FROM betimes.limits
                        WHERE limits.tenant_id = waiting.tenant_id AND limits.kind = 'key' AND limits.key = waiting.gate),
                      (SELECT (settings ->> 'per_key_concurrency')::integer FROM betimes.queues
                        WHERE queues.tenant_id = waiting.tenant_id AND queues.name = waiting.queue), 1))
     ORDER BY waiting.rank LIMIT freed.most) AS next;

-- name: offer_parcels :many
-- Offer held parcels of one shard to workers again.
-- Index: parcels_pkey
-- Guard: only those that are held at a gate or line; SKIP LOCKED: whoever has one right now is doing something with it
-- Returns: shard int2, queue text, tenant_id uuid, fair int2, visible_at timestamptz
WITH chosen AS MATERIALIZED (
    SELECT id FROM betimes.parcels
     WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND held = 1
       FOR UPDATE SKIP LOCKED
)
UPDATE betimes.parcels SET held = 0, held_at = NULL
  FROM chosen
 WHERE parcels.shard = :shard::smallint AND parcels.id = chosen.id
RETURNING parcels.shard, parcels.queue, parcels.tenant_id, parcels.fair, parcels.visible_at;

-- name: find_held_gates :many
-- Concurrency keys behind which something is held, page by page, with how much room they have.
-- Scatter: skips along an index, one probe per key
-- Index: parcels_gate_idx, parcels_gate_slot_idx
-- Returns: tenant_id uuid, gate text, room int8
WITH RECURSIVE walk AS (
    (SELECT tenant_id, gate, queue FROM betimes.parcels
      WHERE gate IS NOT NULL AND held = 1 AND (tenant_id, gate) > (:after_tenant::uuid, :after_gate::text)
      ORDER BY tenant_id, gate LIMIT 1)
    UNION ALL
    SELECT step.tenant_id, step.gate, step.queue
      FROM walk CROSS JOIN LATERAL (
        SELECT tenant_id, gate, queue FROM betimes.parcels
         WHERE gate IS NOT NULL AND held = 1 AND (tenant_id, gate) > (walk.tenant_id, walk.gate)
         ORDER BY tenant_id, gate LIMIT 1) AS step
)
SELECT walk.tenant_id, walk.gate,
       coalesce((SELECT max_inflight FROM betimes.limits
                  WHERE limits.tenant_id = walk.tenant_id AND limits.kind = 'key' AND limits.key = walk.gate),
                (SELECT (settings ->> 'per_key_concurrency')::integer FROM betimes.queues
                  WHERE queues.tenant_id = walk.tenant_id AND queues.name = walk.queue), 1)
       - (SELECT count(*) FROM betimes.parcels
           WHERE parcels.slot AND parcels.gate IS NOT NULL AND parcels.tenant_id = walk.tenant_id AND parcels.gate = walk.gate) AS room
  FROM walk LIMIT :most::integer;

-- name: find_held_lines :many
-- Lines in which something is held although nothing of them is in flight, page by page.
-- Scatter: skips along an index, one probe per line
-- Index: parcels_line_idx, parcels_line_slot_idx
-- Returns: shard int2, line uuid, free bool
WITH RECURSIVE walk AS (
    (SELECT shard, line FROM betimes.parcels
      WHERE line IS NOT NULL AND held = 1 AND (shard, line) > (:after_shard::smallint, :after_line::uuid)
      ORDER BY shard, line LIMIT 1)
    UNION ALL
    SELECT step.shard, step.line
      FROM walk CROSS JOIN LATERAL (
        SELECT shard, line FROM betimes.parcels
         WHERE line IS NOT NULL AND held = 1 AND (shard, line) > (walk.shard, walk.line)
         ORDER BY shard, line LIMIT 1) AS step
)
SELECT walk.shard, walk.line,
       NOT EXISTS (SELECT FROM betimes.parcels
                    WHERE parcels.slot AND parcels.line IS NOT NULL AND parcels.shard = walk.shard AND parcels.line = walk.line) AS free
  FROM walk LIMIT :most::integer;

-- name: find_unused_limits :many
-- Limits that nobody has needed for long and that no parcel waits behind, a bounded number.
-- Scatter: limits belong to tenants, not to shards
-- Index: limits_used_idx
-- Returns: tenant_id uuid, kind text, key text
SELECT tenant_id, kind, key FROM betimes.limits
 WHERE used_at < :before::timestamptz
   AND NOT (kind = 'key' AND EXISTS (
        SELECT FROM betimes.parcels
         WHERE parcels.gate IS NOT NULL AND parcels.tenant_id = limits.tenant_id AND parcels.gate = limits.key))
 ORDER BY used_at LIMIT :most::integer;

-- name: delete_limits :many
-- Forget limits that nobody has needed for long.
-- Index: limits_pkey
-- Guard: whoever relies on a row has touched it within the hour
-- Returns: key text
DELETE FROM betimes.limits
 USING unnest(:tenants::uuid[], :kinds::text[], :keys::text[]) AS unused (tenant_id, kind, key)
 WHERE limits.tenant_id = unused.tenant_id AND limits.kind = unused.kind AND limits.key = unused.key
   AND limits.used_at < :before::timestamptz
RETURNING limits.key;
