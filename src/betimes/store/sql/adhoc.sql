-- Work without a job: inserted in batches of one shard, as the tenant whose work it is.

-- name: insert_uniform_runs :exec
-- Insert ad-hoc runs that differ in nothing but id and payload.
-- Guard: the primary key; a batch is inserted whole or not at all
INSERT INTO betimes.runs (shard, id, tenant_id, due_at, created_at, state, trigger, priority, queue, handler, payload, options,
                          fair, when_full, gate, rate_key, start_by)
SELECT :shard::smallint, fresh.id, :tenant::uuid, :due_at::timestamptz, :created_at::timestamptz, :state::smallint,
       :trigger::smallint, :priority::smallint, :queue::text, :handler::text, fresh.payload, :options::text::jsonb,
       :fair::smallint, :when_full::smallint, :gate::text, :rate_key::text, :start_by::timestamptz
  FROM unnest(:ids::uuid[], :payloads::bytea[]) AS fresh (id, payload);

-- name: insert_mixed_runs :exec
-- Insert ad-hoc runs that differ in more.
-- Guard: the primary key; a batch is inserted whole or not at all
INSERT INTO betimes.runs (shard, id, tenant_id, due_at, created_at, state, trigger, priority, queue, handler, payload, options,
                          fair, when_full, gate, rate_key, start_by)
SELECT :shard::smallint, fresh.id, :tenant::uuid, fresh.due_at, :created_at::timestamptz, fresh.state,
       :trigger::smallint, fresh.priority, fresh.queue, fresh.handler, fresh.payload, fresh.options::jsonb,
       fresh.fair, fresh.when_full, fresh.gate, fresh.rate_key, fresh.start_by
  FROM unnest(:ids::uuid[], :dues::timestamptz[], :states::smallint[], :priorities::smallint[], :queues::text[],
              :handlers::text[], :payloads::bytea[], :options::text[], :fairs::smallint[], :whens::smallint[], :gates::text[],
              :rate_keys::text[], :starts::timestamptz[])
       AS fresh (id, due_at, state, priority, queue, handler, payload, options, fair, when_full, gate, rate_key,
                 start_by);

-- name: insert_waiting_parcels :exec
-- Put several parcels into the queue with one statement; their runs stand one after the other in one list.
-- In a queue without fairness all keys stand in one row.
-- Published: their runs were inserted in this transaction, in state 1, which no publisher reads
INSERT INTO betimes.parcels (shard, id, tenant_id, queue, priority, lane, rank, visible_at, fence, run_ids, fair, when_full, gate, line,
                             rate_key, handler)
SELECT :shard::smallint, fresh.id, :tenant::uuid, fresh.queue, fresh.priority, fresh.lane, fresh.rank, fresh.visible_at,
       fresh.fence, (:runs::uuid[])[fresh.first:fresh.last], CASE WHEN fresh.fair > 0 AND EXISTS (
            SELECT FROM betimes.queues
             WHERE queues.tenant_id = :tenant::uuid AND queues.name = fresh.queue AND queues.fairness = 'none')
            THEN 0 ELSE fresh.fair END, fresh.when_full, fresh.gate, fresh.line,
       fresh.rate_key, fresh.handler
  FROM unnest(:ids::uuid[], :queues::text[], :priorities::smallint[], :lanes::smallint[], :ranks::timestamptz[],
              :visible::timestamptz[], :fences::integer[], :firsts::integer[], :lasts::integer[],
              :fairs::smallint[], :whens::smallint[], :gates::text[], :lines::uuid[], :rate_keys::text[], :handlers::text[])
       AS fresh (id, queue, priority, lane, rank, visible_at, fence, first, last, fair, when_full, gate, line,
                 rate_key, handler);

-- name: find_runs :many
-- Which of these runs exist: after a commit whose reply was lost, whether it happened.
-- Index: runs_pkey
-- Returns: id uuid
SELECT id FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:ids::uuid[]) AND id >= :low::uuid AND id <= :high::uuid;
