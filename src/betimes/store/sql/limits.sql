-- Who may be in flight beside whom. What is in flight is counted from leased parcels, never kept as a number.
-- Order of locks (all of it: ARCHITECTURE.md, "The order of locks"): parcels we hold (by shard and id), then limits (by
-- tenant, kind and key), then parcels that nobody holds, and those only where they are free (SKIP LOCKED).

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
-- Returns: tenant_id uuid, kind text, key text, most int4, tokens float8, refilled_at timestamptz, rate_limit int4, rate_per_ms int8, now timestamptz
SELECT held.tenant_id, held.kind, held.key,
       CASE WHEN held.kind <> 'rate' THEN
       coalesce(held.max_inflight, (SELECT (settings ->> 'per_key_concurrency')::integer FROM betimes.queues
                                     WHERE queues.tenant_id = wanted.tenant_id AND queues.name = wanted.queue), 1) END AS most,
       held.tokens, held.refilled_at,
       CASE WHEN held.kind = 'rate' THEN
       coalesce(held.rate_limit, (SELECT key_rate_limit FROM betimes.queues
                                   WHERE queues.tenant_id = wanted.tenant_id AND queues.name = wanted.queue)) END AS rate_limit,
       CASE WHEN held.kind = 'rate' THEN
       coalesce(held.rate_per_ms, (SELECT key_rate_per_ms FROM betimes.queues
                                    WHERE queues.tenant_id = wanted.tenant_id AND queues.name = wanted.queue)) END AS rate_per_ms,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  -- Sorted before, and each found by its key: sorted afterwards, every limit of the tenant would be read for it.
  FROM (SELECT * FROM unnest(:tenants::uuid[], :kinds::text[], :keys::text[], :queues::text[])
               AS asked (tenant_id, kind, key, queue)
         ORDER BY tenant_id, kind, key) AS wanted
 CROSS JOIN LATERAL (
    SELECT limits.tenant_id, limits.kind, limits.key, limits.max_inflight, limits.tokens, limits.refilled_at,
           limits.rate_limit, limits.rate_per_ms FROM betimes.limits
     WHERE limits.tenant_id = wanted.tenant_id AND limits.kind = wanted.kind AND limits.key = wanted.key
       FOR UPDATE OF limits) AS held;

-- name: write_tokens :exec
-- Write down what is left of some token buckets. The caller holds the rows.
-- Index: limits_pkey
UPDATE betimes.limits SET tokens = left_over.tokens, refilled_at = left_over.refilled_at
  FROM unnest(:tenants::uuid[], :kinds::text[], :keys::text[], :tokens::double precision[], :refilled::timestamptz[])
       AS left_over (tenant_id, kind, key, tokens, refilled_at)
 WHERE limits.tenant_id = left_over.tenant_id AND limits.kind = left_over.kind AND limits.key = left_over.key;

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

-- name: find_claims :many
-- Who comes before younger ones at some concurrency keys and rates: their ranks. The caller holds their limits.
-- Scatter: the parcels of a key lie in every shard
-- Index: parcels_gate_idx, parcels_rate_idx
-- Returns: number int8, rank timestamptz
SELECT wanted.number, claim.rank
  -- Where nobody waits, as is usual, one probe has to say so.
  FROM (SELECT * FROM unnest(:tenants::uuid[], :gates::text[], :rates::text[], :mosts::integer[]) WITH ORDINALITY
               AS asked (tenant_id, gate, rate_key, most, number)
         WHERE CASE WHEN asked.gate IS NOT NULL
                    THEN EXISTS (SELECT FROM betimes.parcels
                                  WHERE parcels.tenant_id = asked.tenant_id AND parcels.gate = asked.gate AND parcels.gate IS NOT NULL
                                    AND parcels.held IN (0, 4) AND parcels.worker_id IS NULL)
                    ELSE EXISTS (SELECT FROM betimes.parcels
                                  WHERE parcels.tenant_id = asked.tenant_id AND parcels.rate_key = asked.rate_key
                                    AND parcels.rate_key IS NOT NULL AND parcels.held IN (0, 4) AND parcels.worker_id IS NULL) END
        OFFSET 0) AS wanted
 CROSS JOIN LATERAL betimes.claims(wanted.tenant_id, wanted.gate, wanted.rate_key,
                                   coalesce(:now::timestamptz, statement_timestamp()), wanted.most) AS claim (rank);

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
   SET slot = decided.hold = 0,
       worker_id = CASE WHEN decided.hold = 0 THEN parcels.worker_id END,
       lease_until = CASE WHEN decided.hold = 0 THEN parcels.lease_until END,
       deliveries = parcels.deliveries - (decided.hold > 0)::integer,
       held = decided.hold,
       held_at = CASE WHEN decided.hold > 0 THEN coalesce(:now::timestamptz, statement_timestamp()) END
  FROM unnest(:shards::smallint[], :ids::uuid[], :holds::smallint[]) AS decided (shard, id, hold)
 WHERE parcels.shard = decided.shard AND parcels.id = decided.id;

-- name: find_next_gated :many
-- The next held parcels of some concurrency keys, best rank first, but none whose line is taken, and as many fewer as
-- places are claimed by those with a better rank.
-- Scatter: the parcels of a concurrency key lie in every shard
-- Index: parcels_gate_idx, parcels_line_slot_idx
-- Returns: shard int2, id uuid
SELECT next.shard, next.id
  FROM (SELECT * FROM unnest(:tenants::uuid[], :gates::text[], :mosts::integer[]) AS left_by (tenant_id, gate, most)
         WHERE CASE WHEN EXISTS (SELECT FROM betimes.parcels
                                  WHERE parcels.tenant_id = left_by.tenant_id AND parcels.gate = left_by.gate
                                    AND parcels.gate IS NOT NULL AND parcels.held = 1) THEN true END
        OFFSET 0) AS freed
 CROSS JOIN LATERAL (
    SELECT merged.shard, merged.id FROM (
        (SELECT waiting.shard, waiting.id, waiting.rank FROM betimes.parcels AS waiting
          WHERE waiting.tenant_id = freed.tenant_id AND waiting.gate = freed.gate AND waiting.gate IS NOT NULL AND waiting.held = 1
            AND (waiting.line IS NULL OR NOT EXISTS (
                 SELECT FROM betimes.parcels AS ahead
                  WHERE ahead.slot AND ahead.line IS NOT NULL AND ahead.shard = waiting.shard AND ahead.line = waiting.line))
          ORDER BY waiting.rank LIMIT freed.most)
        UNION ALL
        SELECT NULL, NULL, claim.rank
          FROM betimes.claims(freed.tenant_id, freed.gate, NULL, coalesce(:now::timestamptz, statement_timestamp()), freed.most)
               AS claim (rank)) AS merged
     ORDER BY merged.rank LIMIT freed.most) AS next
 WHERE next.id IS NOT NULL;

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

-- name: find_next_rated :many
-- The next held parcels of some rates, best rank first, but none whose line or concurrency key is taken.
-- Scatter: the parcels of a rate lie in every shard
-- Index: parcels_rate_idx
-- Returns: shard int2, id uuid
SELECT next.shard, next.id
  FROM unnest(:tenants::uuid[], :keys::text[], :mosts::integer[]) AS freed (tenant_id, key, most)
 CROSS JOIN LATERAL (
    SELECT waiting.shard, waiting.id FROM betimes.parcels AS waiting
     WHERE waiting.tenant_id = freed.tenant_id AND waiting.rate_key = freed.key AND waiting.rate_key IS NOT NULL AND waiting.held = 4
       AND (waiting.line IS NULL OR NOT EXISTS (
            SELECT FROM betimes.parcels AS ahead
             WHERE ahead.slot AND ahead.line IS NOT NULL AND ahead.shard = waiting.shard AND ahead.line = waiting.line))
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
-- Guard: only those that are held at a gate, line or rate; SKIP LOCKED: whoever has one right now is doing something with it
-- Returns: shard int2, queue text, tenant_id uuid, fair int2, visible_at timestamptz
WITH chosen AS MATERIALIZED (
    SELECT id FROM betimes.parcels
     WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND held IN (1, 4)
       FOR UPDATE SKIP LOCKED
)
UPDATE betimes.parcels SET held = 0, held_at = coalesce(:now::timestamptz, statement_timestamp())
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

-- name: look_for_held :one
-- Whether anything is held for a rate and, if that is asked for as well, behind a gate or in a line: the first step of each walk.
-- Scatter: one probe of an index each
-- Index: parcels_rate_idx, parcels_gate_idx, parcels_line_idx
-- Returns: rates bool, gates bool, lines bool
SELECT (SELECT true FROM betimes.parcels WHERE rate_key IS NOT NULL AND held = 4 ORDER BY tenant_id, rate_key LIMIT 1) IS NOT NULL AS rates,
       :keys::boolean AND (SELECT true FROM betimes.parcels WHERE gate IS NOT NULL AND held = 1 ORDER BY tenant_id, gate LIMIT 1) IS NOT NULL AS gates,
       :keys::boolean AND (SELECT true FROM betimes.parcels WHERE line IS NOT NULL AND held = 1 ORDER BY shard, line LIMIT 1) IS NOT NULL AS lines;

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

-- name: find_held_rates :many
-- Rates for which something is held, page by page, with what is left of their tokens and how much is offered already.
-- Scatter: skips along an index, one probe per rate
-- Index: parcels_rate_idx
-- Returns: tenant_id uuid, rate_key text, tokens float8, refilled_at timestamptz, rate_limit int4, rate_per_ms int8, offered int8, now timestamptz
WITH RECURSIVE walk AS (
    (SELECT tenant_id, rate_key, queue FROM betimes.parcels
      WHERE rate_key IS NOT NULL AND held = 4 AND (tenant_id, rate_key) > (:after_tenant::uuid, :after_key::text)
      ORDER BY tenant_id, rate_key LIMIT 1)
    UNION ALL
    SELECT step.tenant_id, step.rate_key, step.queue
      FROM walk CROSS JOIN LATERAL (
        SELECT tenant_id, rate_key, queue FROM betimes.parcels
         WHERE rate_key IS NOT NULL AND held = 4 AND (tenant_id, rate_key) > (walk.tenant_id, walk.rate_key)
         ORDER BY tenant_id, rate_key LIMIT 1) AS step
)
SELECT walk.tenant_id, walk.rate_key, limits.tokens, limits.refilled_at,
       coalesce(limits.rate_limit, queues.key_rate_limit) AS rate_limit,
       coalesce(limits.rate_per_ms, queues.key_rate_per_ms) AS rate_per_ms,
       (SELECT count(*) FROM (
            SELECT FROM betimes.parcels
             WHERE parcels.tenant_id = walk.tenant_id AND parcels.rate_key = walk.rate_key AND parcels.rate_key IS NOT NULL
               AND parcels.held = 0 AND parcels.rank <= coalesce(:now::timestamptz, statement_timestamp())
               AND parcels.worker_id IS NULL AND parcels.visible_at <= coalesce(:now::timestamptz, statement_timestamp())
               -- Whom nobody has fetched for so long does not keep others waiting.
               AND coalesce(parcels.held_at, parcels.visible_at) > coalesce(:now::timestamptz, statement_timestamp()) - interval '5 s'
             LIMIT :offered_max::integer) AS ready) AS offered,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM walk
  LEFT JOIN betimes.limits ON limits.tenant_id = walk.tenant_id AND limits.kind = 'rate' AND limits.key = walk.rate_key
  LEFT JOIN betimes.queues ON queues.tenant_id = walk.tenant_id AND queues.name = walk.queue
 LIMIT :most::integer;

-- name: find_shut_out :many
-- Parcels that wait for a token although their gate or line is full by now, best rank first.
-- Scatter: the parcels of a rate lie in every shard
-- Index: parcels_rate_idx
-- Returns: shard int2, id uuid
SELECT blocked.shard, blocked.id
  FROM unnest(:tenants::uuid[], :keys::text[]) AS looked (tenant_id, key)
 CROSS JOIN LATERAL (
    SELECT waiting.shard, waiting.id FROM betimes.parcels AS waiting
     WHERE waiting.tenant_id = looked.tenant_id AND waiting.rate_key = looked.key AND waiting.rate_key IS NOT NULL AND waiting.held = 4
       AND ((waiting.line IS NOT NULL AND EXISTS (
            SELECT FROM betimes.parcels AS ahead
             WHERE ahead.slot AND ahead.line IS NOT NULL AND ahead.shard = waiting.shard AND ahead.line = waiting.line))
         OR (waiting.gate IS NOT NULL AND (
            SELECT count(*) FROM betimes.parcels AS ahead
             WHERE ahead.slot AND ahead.gate IS NOT NULL AND ahead.tenant_id = waiting.tenant_id AND ahead.gate = waiting.gate)
           >= coalesce((SELECT max_inflight FROM betimes.limits
                         WHERE limits.tenant_id = waiting.tenant_id AND limits.kind = 'key' AND limits.key = waiting.gate),
                       (SELECT (settings ->> 'per_key_concurrency')::integer FROM betimes.queues
                         WHERE queues.tenant_id = waiting.tenant_id AND queues.name = waiting.queue), 1)))
     ORDER BY waiting.rank LIMIT :most::integer) AS blocked;

-- name: turn_to_gates :many
-- Parcels of one shard that waited for a token wait for their gate or line from now on.
-- Index: parcels_pkey
-- Guard: only those that wait for a token; SKIP LOCKED: whoever has one right now is doing something with it
-- Returns: id uuid
WITH chosen AS MATERIALIZED (
    SELECT id FROM betimes.parcels
     WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND held = 4
       FOR UPDATE SKIP LOCKED
)
UPDATE betimes.parcels SET held = 1
  FROM chosen
 WHERE parcels.shard = :shard::smallint AND parcels.id = chosen.id
RETURNING parcels.id;

-- name: put_rate :one
-- Say how many runs of a rate limit key may start in a time; the last word counts, also for what waits.
-- Index: limits_pkey
-- Guard: the primary key
-- Returns: key text, rate_limit int4, rate_per_ms int8
INSERT INTO betimes.limits AS limits (tenant_id, kind, key, rate_limit, rate_per_ms, used_at)
VALUES (:tenant::uuid, 'rate', :key::text, :rate_limit::integer, :rate_per_ms::bigint, :now::timestamptz)
ON CONFLICT (tenant_id, kind, key) DO UPDATE
   SET rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, used_at = excluded.used_at
RETURNING key, rate_limit, rate_per_ms;

-- name: read_rate :maybe
-- What was said about a rate limit key.
-- Index: limits_pkey
-- Returns: key text, rate_limit int4, rate_per_ms int8
SELECT key, rate_limit, rate_per_ms FROM betimes.limits
 WHERE tenant_id = :tenant::uuid AND kind = 'rate' AND key = :key::text AND rate_limit IS NOT NULL;

-- name: list_rates :many
-- The rate limit keys of a tenant about which something was said, in order.
-- Index: limits_pkey
-- Returns: key text, rate_limit int4, rate_per_ms int8
SELECT key, rate_limit, rate_per_ms FROM betimes.limits
 WHERE tenant_id = :tenant::uuid AND kind = 'rate' AND key > :after::text AND rate_limit IS NOT NULL
 ORDER BY key LIMIT :most::integer;

-- name: forget_rate :maybe
-- Say nothing about a rate limit key any more: what its queue says counts, else nothing.
-- Index: limits_pkey
-- Returns: key text
UPDATE betimes.limits SET rate_limit = NULL, rate_per_ms = NULL
 WHERE tenant_id = :tenant::uuid AND kind = 'rate' AND key = :key::text AND rate_limit IS NOT NULL
RETURNING key;

-- name: find_unused_limits :many
-- Limits that nobody has needed for long and that no parcel waits behind, a bounded number.
-- Scatter: limits belong to tenants, not to shards
-- Index: limits_used_idx
-- Returns: tenant_id uuid, kind text, key text
SELECT tenant_id, kind, key FROM betimes.limits
 WHERE used_at < :before::timestamptz AND NOT (kind = 'rate' AND rate_limit IS NOT NULL)
   AND NOT (kind = 'rate' AND EXISTS (
        SELECT FROM betimes.parcels
         WHERE parcels.rate_key IS NOT NULL AND parcels.tenant_id = limits.tenant_id AND parcels.rate_key = limits.key))
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
