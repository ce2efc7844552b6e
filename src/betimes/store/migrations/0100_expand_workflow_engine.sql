-- What workflow runs need beyond their first draft, into which nothing was ever written.
-- A definition is bytes, so that it can be sealed like any payload; a workflow run carries its own, and with it
-- everything that a turn needs lies in one shard. How many needs a node still waits for follows from the others.
ALTER TABLE betimes.workflows
    ALTER COLUMN definition TYPE bytea USING convert_to(definition::text, 'UTF8');
CREATE INDEX workflows_tenant_idx ON betimes.workflows (tenant_id, name, version) WHERE deleted_at IS NULL;

ALTER TABLE betimes.workflow_runs
    ADD COLUMN definition bytea NOT NULL,
    ADD COLUMN digest bytea NOT NULL,
    -- Why no more of its ordinary nodes start.
    ADD COLUMN stop smallint CHECK (stop BETWEEN 1 AND 4),
    -- The run of a job that has started it and waits for its end.
    ADD COLUMN run_id uuid,
    ADD COLUMN created_by text,
    ADD COLUMN retries integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT workflow_runs_finished_means_final CHECK ((finished_at IS NOT NULL) = (state > 0));
CREATE INDEX workflow_runs_old_idx ON betimes.workflow_runs (shard, finished_at) WHERE finished_at IS NOT NULL;

ALTER TABLE betimes.workflow_nodes
    DROP COLUMN waits_for,
    ADD COLUMN ready_at timestamptz,
    ADD COLUMN is_open boolean NOT NULL DEFAULT false,
    ADD COLUMN is_interrupted boolean NOT NULL DEFAULT false,
    ADD COLUMN signal bytea,
    -- Of a mapped node, once its items are known; the first so many have runs.
    ADD COLUMN items_total integer,
    ADD COLUMN items_started integer NOT NULL DEFAULT 0,
    ADD COLUMN items_succeeded integer NOT NULL DEFAULT 0,
    ADD COLUMN items_failed integer NOT NULL DEFAULT 0,
    ADD COLUMN items_cancelled integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT workflow_nodes_items_add_up
        CHECK (items_succeeded + items_failed + items_cancelled <= items_started AND items_started <= coalesce(items_total, 0));
CREATE INDEX workflow_nodes_running_idx ON betimes.workflow_nodes (shard, run_id) WHERE state = 2 AND run_id IS NOT NULL;

CREATE TABLE betimes.workflow_items (
    shard           smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    node            text NOT NULL,
    place           integer NOT NULL CHECK (place >= 0),
    tenant_id       uuid NOT NULL,
    run_id          uuid NOT NULL,
    state           smallint NOT NULL DEFAULT 2,
    output          bytea,
    error           jsonb,
    PRIMARY KEY (shard, workflow_run_id, node, place)
) WITH (fillfactor = 70);
COMMENT ON TABLE betimes.workflow_items IS 'One run of a mapped node each.';
CREATE INDEX workflow_items_running_idx ON betimes.workflow_items (shard, run_id) WHERE state = 2;

-- Word that a workflow run is to be looked at: written by whoever ends a run that belongs to one, in the same
-- transaction. One row for each cause, so that nobody relies on a row that somebody else is about to take.
CREATE TABLE betimes.workflow_turns (
    shard           smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    -- The run that has ended, or the workflow run itself.
    cause           uuid NOT NULL,
    tenant_id       uuid NOT NULL,
    due_at          timestamptz NOT NULL,
    PRIMARY KEY (shard, workflow_run_id, cause)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX workflow_turns_due_idx ON betimes.workflow_turns (due_at, shard, workflow_run_id);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['workflow_items', 'workflow_turns'] LOOP
        EXECUTE format('ALTER TABLE betimes.%I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE betimes.%I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('CREATE POLICY own_tenant ON betimes.%I TO betimes_api '
                       'USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant())',
                       tenant_table);
        EXECUTE format('CREATE POLICY whole_system ON betimes.%I TO betimes_system USING (true) WITH CHECK (true)',
                       tenant_table);
    END LOOP;
END
$$;
GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.workflow_items, betimes.workflow_turns TO betimes_api, betimes_system;
