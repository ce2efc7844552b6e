-- Graphs of runs. Everything of one workflow run lives in one shard, so one transaction advances it.

CREATE TABLE betimes.workflows (
    shard      smallint NOT NULL,
    tenant_id  uuid NOT NULL,
    name       text NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    id         uuid NOT NULL,
    definition jsonb NOT NULL,
    digest     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text,
    deleted_at timestamptz,
    PRIMARY KEY (shard, tenant_id, name, version)
);

CREATE TABLE betimes.workflow_runs (
    shard       smallint NOT NULL,
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    workflow    text NOT NULL,
    version     integer NOT NULL,
    job_id      uuid,
    state       smallint NOT NULL DEFAULT 0,
    input       bytea,
    output      bytea,
    error       jsonb,
    options     jsonb,
    started_at  timestamptz NOT NULL,
    deadline_at timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (shard, id)
);
CREATE INDEX workflow_runs_tenant_idx ON betimes.workflow_runs (tenant_id, id);

CREATE TABLE betimes.workflow_nodes (
    shard           smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    node            text NOT NULL,
    tenant_id       uuid NOT NULL,
    run_id          uuid,
    state           smallint NOT NULL DEFAULT 0,
    -- Predecessors that have not ended yet; at zero the node is decided.
    waits_for       integer NOT NULL CHECK (waits_for >= 0),
    output          bytea,
    detail          jsonb,
    started_at      timestamptz,
    finished_at     timestamptz,
    PRIMARY KEY (shard, workflow_run_id, node)
) WITH (fillfactor = 70);
