-- Workflow runs, their nodes and items, and the turns that move them. Everything of one lies in one shard.

-- name: insert_workflow_run :exec
-- Keep a new workflow run.
-- Guard: the primary key
INSERT INTO betimes.workflow_runs (shard, id, tenant_id, workflow, version, job_id, run_id, input, options, definition, digest,
                                   started_at, deadline_at, created_by)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :workflow::text, :version::integer, :job::uuid, :run::uuid, :input::bytea,
        :options::text::jsonb, :definition::bytea, :digest::bytea, :now::timestamptz, :deadline_at::timestamptz, :by::text);

-- name: insert_workflow_nodes :exec
-- Its nodes, all of which wait.
INSERT INTO betimes.workflow_nodes (shard, workflow_run_id, node, tenant_id)
SELECT :shard::smallint, :workflow_run::uuid, fresh.node, :tenant::uuid FROM unnest(:nodes::text[]) AS fresh (node);

-- name: lock_workflow_run :maybe
-- One workflow run, held until the transaction ends: whoever moves it holds it.
-- Index: workflow_runs_pkey
-- Returns: id uuid, tenant_id uuid, workflow text, version int4, job_id uuid, run_id uuid, state int2, stop int2, input bytea, error text, options text, digest bytea, started_at timestamptz, deadline_at timestamptz, finished_at timestamptz, created_by text, retries int4
SELECT id, tenant_id, workflow, version, job_id, run_id, state, stop, input, error::text AS error, options::text AS options,
       digest, started_at, deadline_at, finished_at, created_by, retries
  FROM betimes.workflow_runs WHERE shard = :shard::smallint AND id = :id::uuid
   FOR UPDATE;

-- name: claim_workflow_run :maybe
-- The same, if nobody holds it now: they move it, and nobody waits for that.
-- Index: workflow_runs_pkey
-- Returns: id uuid, tenant_id uuid, workflow text, version int4, job_id uuid, run_id uuid, state int2, stop int2, input bytea, error text, options text, digest bytea, started_at timestamptz, deadline_at timestamptz, finished_at timestamptz, created_by text, retries int4
WITH free AS MATERIALIZED (
    SELECT id, tenant_id, workflow, version, job_id, run_id, state, stop, input, error::text AS error, options::text AS options,
           digest, started_at, deadline_at, finished_at, created_by, retries
      FROM betimes.workflow_runs WHERE shard = :shard::smallint AND id = :id::uuid
       FOR UPDATE SKIP LOCKED
)
SELECT id, tenant_id, workflow, version, job_id, run_id, state, stop, input, error, options, digest, started_at, deadline_at,
       finished_at, created_by, retries
  FROM free;

-- name: read_workflow_run :maybe
-- One workflow run as it is.
-- Index: workflow_runs_pkey
-- Returns: id uuid, tenant_id uuid, workflow text, version int4, job_id uuid, run_id uuid, state int2, stop int2, input bytea, error text, options text, digest bytea, started_at timestamptz, deadline_at timestamptz, finished_at timestamptz, created_by text, retries int4
SELECT id, tenant_id, workflow, version, job_id, run_id, state, stop, input, error::text AS error, options::text AS options,
       digest, started_at, deadline_at, finished_at, created_by, retries
  FROM betimes.workflow_runs WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: read_run_definition :maybe
-- The definition that a workflow run carries.
-- Index: workflow_runs_pkey
-- Returns: definition bytea
SELECT definition FROM betimes.workflow_runs WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: list_workflow_runs :many
-- Workflow runs of a tenant, newest first.
-- Scatter: a tenant's workflow runs lie in every shard
-- Index: workflow_runs_tenant_idx
-- Returns: id uuid, tenant_id uuid, workflow text, version int4, job_id uuid, run_id uuid, state int2, stop int2, input bytea, error text, options text, digest bytea, started_at timestamptz, deadline_at timestamptz, finished_at timestamptz, created_by text, retries int4
SELECT id, tenant_id, workflow, version, job_id, run_id, state, stop, input, error::text AS error, options::text AS options,
       digest, started_at, deadline_at, finished_at, created_by, retries
  FROM betimes.workflow_runs
 WHERE tenant_id = :tenant::uuid AND id < :before::uuid
   AND (:workflow::text IS NULL OR workflow = :workflow::text)
   AND (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
 ORDER BY id DESC LIMIT :most::integer;

-- name: read_workflow_nodes :many
-- The nodes of a workflow run without what they have returned.
-- Index: workflow_nodes_pkey
-- Returns: node text, state int2, run_id uuid, detail text, ready_at timestamptz, started_at timestamptz, finished_at timestamptz, is_open bool, is_interrupted bool, items_total int4, items_started int4, items_succeeded int4, items_failed int4, items_cancelled int4
SELECT node, state, run_id, detail::text AS detail, ready_at, started_at, finished_at, is_open, is_interrupted,
       items_total, items_started, items_succeeded, items_failed, items_cancelled
  FROM betimes.workflow_nodes WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid;

-- name: read_node_outputs :many
-- What nodes have returned, and the signals they were sent.
-- Index: workflow_nodes_pkey
-- Returns: node text, output bytea, signal bytea
SELECT node, output, signal FROM betimes.workflow_nodes
 WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid AND node = ANY (:nodes::text[]);

-- name: read_item_outputs :many
-- What the items of mapped nodes have returned, in their order.
-- Index: workflow_items_pkey
-- Returns: node text, output bytea
SELECT node, output FROM betimes.workflow_items
 WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid AND node = ANY (:nodes::text[])
 ORDER BY node, place;

-- name: write_workflow_nodes :exec
-- Write what became of nodes; an output or signal that is not given stays.
-- Index: workflow_nodes_pkey
-- Guard: the caller holds the workflow run
UPDATE betimes.workflow_nodes
   SET state = fresh.state, run_id = fresh.run_id, detail = fresh.detail::jsonb, ready_at = fresh.ready_at,
       started_at = fresh.started_at, finished_at = fresh.finished_at, is_open = fresh.is_open,
       is_interrupted = fresh.is_interrupted, items_total = fresh.items_total, items_started = fresh.items_started,
       items_succeeded = fresh.items_succeeded, items_failed = fresh.items_failed, items_cancelled = fresh.items_cancelled,
       output = CASE WHEN fresh.state IN (0, 1) THEN NULL ELSE coalesce(fresh.output, workflow_nodes.output) END,
       signal = CASE WHEN fresh.state = 0 THEN NULL ELSE coalesce(fresh.signal, workflow_nodes.signal) END
  FROM unnest(:nodes::text[], :states::smallint[], :runs::uuid[], :details::text[], :ready::timestamptz[],
              :started::timestamptz[], :finished::timestamptz[], :open::boolean[], :interrupted::boolean[],
              :totals::integer[], :begun::integer[], :succeeded::integer[], :failed::integer[], :cancelled::integer[],
              :outputs::bytea[], :signals::bytea[])
       AS fresh (node, state, run_id, detail, ready_at, started_at, finished_at, is_open, is_interrupted, items_total,
                 items_started, items_succeeded, items_failed, items_cancelled, output, signal)
 WHERE workflow_nodes.shard = :shard::smallint AND workflow_nodes.workflow_run_id = :workflow_run::uuid
   AND workflow_nodes.node = fresh.node;

-- name: insert_workflow_items :exec
-- Items of mapped nodes whose runs were made.
-- Guard: the primary key; the caller holds the workflow run
INSERT INTO betimes.workflow_items (shard, workflow_run_id, node, place, tenant_id, run_id)
SELECT :shard::smallint, :workflow_run::uuid, fresh.node, fresh.place, :tenant::uuid, fresh.run_id
  FROM unnest(:nodes::text[], :places::integer[], :runs::uuid[]) AS fresh (node, place, run_id);

-- name: end_workflow_items :many
-- Write what became of items; those that another run stands for by now are not touched.
-- Index: workflow_items_running_idx
-- Guard: the run that stands for it, and only while it has not ended; the caller holds the workflow run
-- Returns: node text, place int4, state int2
UPDATE betimes.workflow_items
   SET state = ended.state, output = ended.output, error = ended.error::jsonb
  FROM unnest(:nodes::text[], :places::integer[], :runs::uuid[], :states::smallint[], :outputs::bytea[], :errors::text[])
       AS ended (node, place, run_id, state, output, error)
 WHERE workflow_items.shard = :shard::smallint AND workflow_items.workflow_run_id = :workflow_run::uuid
   AND workflow_items.node = ended.node AND workflow_items.place = ended.place
   AND workflow_items.run_id = ended.run_id AND workflow_items.state = 2
RETURNING workflow_items.node, workflow_items.place, workflow_items.state;

-- name: find_running_items :many
-- Runs of items that have not ended and that nobody has asked to end, as many as are wanted.
-- Index: workflow_items_pkey
-- Returns: run_id uuid
SELECT items.run_id
  FROM betimes.workflow_items AS items
 CROSS JOIN LATERAL (
    SELECT state, cancel_at FROM betimes.runs WHERE runs.shard = :shard::smallint AND runs.id = items.run_id
    -- One look by id for each item, however many runs there are beside them.
    OFFSET 0) AS work
 WHERE items.shard = :shard::smallint AND items.workflow_run_id = :workflow_run::uuid
   AND items.node = ANY (:nodes::text[]) AND items.state = 2 AND work.state < 4 AND work.cancel_at IS NULL
 LIMIT :most::integer;

-- name: delete_workflow_items :one
-- Forget items of nodes that are done again, at most so many.
-- Index: workflow_items_pkey
-- Guard: the caller holds the workflow run
-- Returns: deleted int8
WITH gone AS (
    DELETE FROM betimes.workflow_items
     WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid
       AND (node, place) IN (SELECT old.node, old.place FROM betimes.workflow_items AS old
                              WHERE old.shard = :shard::smallint AND old.workflow_run_id = :workflow_run::uuid
                                AND old.node = ANY (:nodes::text[])
                              LIMIT :most::integer)
    RETURNING place
)
SELECT count(*) AS deleted FROM gone;

-- name: write_workflow_run :exec
-- Write how a workflow run stands.
-- Index: workflow_runs_pkey
-- Guard: the caller holds it
UPDATE betimes.workflow_runs
   SET state = :state::smallint, stop = :stop::smallint, error = :error::text::jsonb, finished_at = :finished_at::timestamptz,
       deadline_at = :deadline_at::timestamptz, retries = :retries::integer
 WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: insert_node_runs :exec
-- Runs that do the work of nodes.
-- Guard: the primary key; the caller holds the workflow run
INSERT INTO betimes.runs (shard, id, tenant_id, due_at, created_at, state, trigger, priority, queue, handler, payload, options,
                          fair, when_full, gate, rate_key, start_by, workflow_run_id, node)
SELECT :shard::smallint, fresh.id, :tenant::uuid, fresh.due_at, :created_at::timestamptz, fresh.state,
       :trigger::smallint, fresh.priority, fresh.queue, fresh.handler, fresh.payload, fresh.options::jsonb,
       fresh.fair, fresh.when_full, fresh.gate, fresh.rate_key, fresh.start_by, :workflow_run::uuid, fresh.node
  FROM unnest(:ids::uuid[], :dues::timestamptz[], :states::smallint[], :priorities::smallint[], :queues::text[],
              :handlers::text[], :payloads::bytea[], :options::text[], :fairs::smallint[], :whens::smallint[], :gates::text[],
              :rate_keys::text[], :starts::timestamptz[], :nodes::text[])
       AS fresh (id, due_at, state, priority, queue, handler, payload, options, fair, when_full, gate, rate_key,
                 start_by, node);

-- name: link_run :exec
-- Write into a run which workflow run it has started: whoever ends it leaves word there.
-- Index: runs_pkey
UPDATE betimes.runs SET workflow_run_id = :workflow_run::uuid WHERE shard = :shard::smallint AND id = :id::uuid;

-- name: wake_run :many
-- Let a run that sleeps in its parcel be handed out at once.
-- Guard: only a parcel that nobody holds
-- Returns: queue text, fair int2
UPDATE betimes.parcels SET visible_at = :now::timestamptz, rank = least(rank, :now::timestamptz)
 WHERE shard = :shard::smallint AND tenant_id = :tenant::uuid AND run_ids && ARRAY[:run::uuid] AND worker_id IS NULL
   AND visible_at > :now::timestamptz
RETURNING queue, fair;

-- name: read_ends_of_nodes :many
-- Those of some runs that are over, and what became of them.
-- Index: runs_pkey
-- Returns: id uuid, node text, state int2, result bytea, error text, reason text, started_at timestamptz, finished_at timestamptz
SELECT id, node, state, result, error::text AS error, reason, started_at, finished_at
  FROM betimes.runs
 WHERE shard = :shard::smallint AND id = ANY (:runs::uuid[]) AND id >= :low::uuid AND id <= :high::uuid AND state >= 4;

-- name: find_vanished_runs :many
-- Those of some runs of which no row is left, and the items they stand for. There should be none.
-- Index: runs_pkey, workflow_items_running_idx
-- Returns: run_id uuid, node text, place int4
SELECT asked.id AS run_id, items.node, items.place
  FROM unnest(:runs::uuid[]) AS asked (id)
  LEFT JOIN betimes.workflow_items AS items
         ON items.shard = :shard::smallint AND items.run_id = asked.id AND items.state = 2
        AND items.workflow_run_id = :workflow_run::uuid
 WHERE NOT EXISTS (SELECT FROM betimes.runs WHERE runs.shard = :shard::smallint AND runs.id = asked.id);

-- name: find_due_turns :many
-- Workflow runs that are to be looked at, the longest due first, and how many of the rows that were read are theirs.
-- Usually none, and then this reads next to nothing.
-- Scatter: one look for all shards
-- Index: workflow_turns_due_idx
-- Returns: shard int2, workflow_run_id uuid, words int8
SELECT shard, workflow_run_id, count(*) AS words
  FROM (SELECT shard, workflow_run_id, due_at FROM betimes.workflow_turns
         WHERE due_at <= coalesce(:now::timestamptz, statement_timestamp()) AND workflow_run_id <> ALL (:but::uuid[])
         ORDER BY due_at LIMIT :rows::integer) AS due
 GROUP BY shard, workflow_run_id ORDER BY min(due_at) LIMIT :most::integer;

-- name: read_turns_ahead :one
-- How soon a workflow run is to be looked at by the clock, and whether a run is under way whose end may leave word any time.
-- Scatter: one look for all shards
-- Index: workflow_turns_due_idx, workflow_nodes_running_idx, workflow_items_running_idx
-- Returns: due_in float8, under_way bool
SELECT (SELECT extract(epoch FROM due_at - coalesce(:now::timestamptz, statement_timestamp()))::float8
          FROM betimes.workflow_turns
         WHERE due_at > coalesce(:now::timestamptz, statement_timestamp()) ORDER BY due_at LIMIT 1) AS due_in,
       EXISTS (SELECT FROM betimes.workflow_nodes WHERE state = 2 AND run_id IS NOT NULL)
       OR EXISTS (SELECT FROM betimes.workflow_items WHERE state = 2) AS under_way;

-- name: take_turns :many
-- Take what is due of one workflow run, as much as one turn has room for; the rest stays due for the next one.
-- Index: workflow_turns_pkey
-- Guard: the caller holds the workflow run, and does in the same transaction what is to be done
-- Returns: cause uuid
DELETE FROM betimes.workflow_turns
 WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid
   AND cause IN (SELECT taken.cause FROM betimes.workflow_turns AS taken
                  WHERE taken.shard = :shard::smallint AND taken.workflow_run_id = :workflow_run::uuid
                    AND taken.due_at <= :now::timestamptz
                  LIMIT :most::integer)
RETURNING cause;

-- name: postpone_turns :exec
-- Look at a workflow run later: nobody can take its turn now.
UPDATE betimes.workflow_turns SET due_at = :due_at::timestamptz
 WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid AND due_at <= :now::timestamptz;

-- name: drop_turns :exec
-- Forget that a workflow run is to be looked at: it is over, or gone.
-- Index: workflow_turns_pkey
DELETE FROM betimes.workflow_turns WHERE shard = :shard::smallint AND workflow_run_id = :workflow_run::uuid;

-- name: add_turn :exec
-- Look at a workflow run at an instant.
-- Index: workflow_turns_pkey
INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
VALUES (:shard::smallint, :workflow_run::uuid, :cause::uuid, :tenant::uuid, :due_at::timestamptz)
ON CONFLICT (shard, workflow_run_id, cause) DO UPDATE SET due_at = excluded.due_at;

-- name: add_turns :exec
-- Look at workflow runs at an instant, for one cause each.
-- Index: workflow_turns_pkey
INSERT INTO betimes.workflow_turns (shard, workflow_run_id, cause, tenant_id, due_at)
SELECT fresh.shard, fresh.workflow_run_id, fresh.cause, fresh.tenant_id, :due_at::timestamptz
  FROM unnest(:shards::smallint[], :workflow_runs::uuid[], :causes::uuid[], :tenants::uuid[])
       AS fresh (shard, workflow_run_id, cause, tenant_id)
ON CONFLICT (shard, workflow_run_id, cause) DO NOTHING;

-- name: find_lost_nodes :many
-- Nodes that count as running although their run is over and no word of that waits: it was lost, which must not be.
-- Scatter: a sweep over all shards, page by page
-- Index: workflow_nodes_running_idx
-- Returns: shard int2, workflow_run_id uuid, run_id uuid, tenant_id uuid, is_lost bool
SELECT page.shard, page.workflow_run_id, page.run_id, page.tenant_id,
       coalesce(runs.state >= 4, true)
       AND NOT EXISTS (SELECT FROM betimes.workflow_turns AS word
                        WHERE word.shard = page.shard AND word.workflow_run_id = page.workflow_run_id
                          AND word.cause = page.run_id) AS is_lost
  FROM (SELECT shard, workflow_run_id, run_id, tenant_id FROM betimes.workflow_nodes
         WHERE state = 2 AND run_id IS NOT NULL AND (shard, run_id) > (:shard::smallint, :after::uuid)
         ORDER BY shard, run_id LIMIT :most::integer) AS page
  LEFT JOIN betimes.runs ON runs.shard = page.shard AND runs.id = page.run_id
 ORDER BY page.shard, page.run_id;

-- name: find_lost_items :many
-- The same for items.
-- Scatter: a sweep over all shards, page by page
-- Index: workflow_items_running_idx
-- Returns: shard int2, workflow_run_id uuid, run_id uuid, tenant_id uuid, is_lost bool
SELECT page.shard, page.workflow_run_id, page.run_id, page.tenant_id,
       coalesce(runs.state >= 4, true)
       AND NOT EXISTS (SELECT FROM betimes.workflow_turns AS word
                        WHERE word.shard = page.shard AND word.workflow_run_id = page.workflow_run_id
                          AND word.cause = page.run_id) AS is_lost
  FROM (SELECT shard, workflow_run_id, run_id, tenant_id FROM betimes.workflow_items
         WHERE state = 2 AND (shard, run_id) > (:shard::smallint, :after::uuid)
         ORDER BY shard, run_id LIMIT :most::integer) AS page
  LEFT JOIN betimes.runs ON runs.shard = page.shard AND runs.id = page.run_id
 ORDER BY page.shard, page.run_id;
