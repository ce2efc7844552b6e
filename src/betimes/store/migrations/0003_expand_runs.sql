-- The straight line: runs, the parcels that carry them, and what became of them.

CREATE TABLE betimes.runs (
    -- The id begins with the time the run was first planned to be due, so the primary key is also
    -- the order of dueness, and the partition is the day. No index on due_at is needed.
    id               uuid NOT NULL,
    tenant_id        uuid NOT NULL,
    job_id           uuid,
    workflow_run_id  uuid,
    worker_id        uuid,
    due_at           timestamptz NOT NULL,
    fire_at          timestamptz,
    created_at       timestamptz,
    first_started_at timestamptz,
    started_at       timestamptz,
    finished_at      timestamptz,
    -- Somebody asked for the end while a worker held the run; told to it with the next heartbeat.
    cancel_at        timestamptz,
    revision         integer,
    fence            integer NOT NULL DEFAULT 0,
    shard            smallint NOT NULL,
    -- In no index and in no predicate of an index: finishing a run is a HOT update.
    state            smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 9 AND state <> 2),
    trigger          smallint NOT NULL DEFAULT 0,
    priority         smallint NOT NULL DEFAULT 5,
    attempt          smallint NOT NULL DEFAULT 0,
    queue            text NOT NULL,
    handler          text,
    node             text,
    reason           text,
    payload          bytea,
    options          jsonb,
    result           bytea,
    error            jsonb,
    PRIMARY KEY (shard, id),
    CONSTRAINT runs_finished_means_final CHECK ((finished_at IS NOT NULL) = (state >= 4))
) PARTITION BY RANGE (id);

CREATE INDEX runs_job_idx ON betimes.runs (shard, job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX runs_tenant_idx ON betimes.runs (tenant_id, id);
CREATE TABLE betimes.runs_default PARTITION OF betimes.runs DEFAULT;

CREATE TABLE betimes.attempts (
    shard         smallint NOT NULL,
    run_id        uuid NOT NULL,
    number        smallint NOT NULL,
    tenant_id     uuid NOT NULL,
    worker_id     uuid,
    fence         integer NOT NULL,
    started_at    timestamptz,
    finished_at   timestamptz NOT NULL,
    next_retry_at timestamptz,
    outcome       smallint NOT NULL,
    error         jsonb,
    http          jsonb,
    PRIMARY KEY (shard, run_id, number, fence)
) PARTITION BY RANGE (run_id);
COMMENT ON TABLE betimes.attempts IS 'Attempts that failed, timed out or were lost; the last good one is in the run row.';
CREATE TABLE betimes.attempts_default PARTITION OF betimes.attempts DEFAULT;

CREATE TABLE betimes.parcels (
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    worker_id   uuid,
    rank        timestamptz NOT NULL,
    visible_at  timestamptz NOT NULL,
    lease_until timestamptz,
    fence       integer NOT NULL DEFAULT 0,
    deliveries  integer NOT NULL DEFAULT 0,
    shard       smallint NOT NULL,
    priority    smallint NOT NULL DEFAULT 5,
    -- 0 on time, 1 retry, 2 catch-up
    lane        smallint NOT NULL DEFAULT 0,
    queue       text NOT NULL,
    run_ids     uuid[] NOT NULL CHECK (cardinality(run_ids) > 0),
    PRIMARY KEY (shard, id),
    CONSTRAINT parcels_leased_by_somebody CHECK ((worker_id IS NULL) = (lease_until IS NULL))
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000
);
CREATE INDEX parcels_ready_idx ON betimes.parcels (shard, queue, tenant_id, rank) INCLUDE (visible_at, deliveries)
    WHERE worker_id IS NULL;
CREATE INDEX parcels_leased_idx ON betimes.parcels (shard, lease_until) WHERE worker_id IS NOT NULL;
CREATE INDEX parcels_worker_idx ON betimes.parcels (worker_id) WHERE worker_id IS NOT NULL;

CREATE TABLE betimes.dead_letters (
    shard       smallint NOT NULL,
    run_id      uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    job_id      uuid,
    dead_at     timestamptz NOT NULL,
    resolved_at timestamptz,
    attempts    smallint NOT NULL,
    state       smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
    queue       text NOT NULL,
    handler     text,
    fingerprint text NOT NULL,
    reason      text NOT NULL,
    error       jsonb,
    note        text,
    assignee    text,
    PRIMARY KEY (shard, run_id)
);
CREATE INDEX dead_letters_tenant_idx ON betimes.dead_letters (tenant_id, state, dead_at, run_id);
CREATE INDEX dead_letters_group_idx ON betimes.dead_letters (tenant_id, fingerprint, dead_at);

CREATE TABLE betimes.blobs (
    shard       smallint NOT NULL,
    tenant_id   uuid NOT NULL,
    id          uuid NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    size        bigint NOT NULL CHECK (size >= 0),
    key_version integer NOT NULL DEFAULT 0,
    media_type  text NOT NULL DEFAULT 'application/json',
    location    text,
    nonce       bytea,
    content     bytea,
    PRIMARY KEY (shard, tenant_id, id)
);
CREATE INDEX blobs_expires_idx ON betimes.blobs (shard, expires_at) WHERE expires_at IS NOT NULL;
