-- What to do and when.

CREATE TABLE betimes.jobs (
    shard        smallint NOT NULL,
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL,
    next_fire_at timestamptz,
    paused_until timestamptz,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    -- Moves on edits only, never on fires: a busy cron must not turn somebody's edit into a conflict.
    revision     integer NOT NULL DEFAULT 1 CHECK (revision > 0),
    fires        bigint NOT NULL DEFAULT 0,
    state        smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    priority     smallint NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
    after_completion smallint NOT NULL DEFAULT 0 CHECK (after_completion BETWEEN 0 AND 1),
    job_group    text NOT NULL DEFAULT 'default',
    name         text,
    queue        text NOT NULL DEFAULT 'default',
    handler      text,
    tzdata       text NOT NULL,
    schedule     jsonb NOT NULL,
    target       jsonb NOT NULL,
    payload      bytea,
    -- Everything that is rare: retry, timeout, overlap, concurrency, dedupe, notify, tags, metadata.
    options      jsonb,
    state_reason jsonb,
    created_by   text,
    PRIMARY KEY (shard, id),
    CONSTRAINT jobs_only_active_jobs_fire CHECK (state = 0 OR next_fire_at IS NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX jobs_next_fire_idx ON betimes.jobs (shard, next_fire_at, id) WHERE next_fire_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_name_idx ON betimes.jobs (shard, tenant_id, job_group, name) WHERE name IS NOT NULL;
CREATE INDEX jobs_tenant_idx ON betimes.jobs (tenant_id, id);
-- One-off jobs that are to go when their last run is over.
CREATE INDEX jobs_spent_idx ON betimes.jobs (shard, id) WHERE state = 3 AND after_completion = 1;
CREATE INDEX jobs_paused_until_idx ON betimes.jobs (shard, paused_until) WHERE paused_until IS NOT NULL;

CREATE TABLE betimes.job_revisions (
    shard      smallint NOT NULL,
    job_id     uuid NOT NULL,
    revision   integer NOT NULL,
    tenant_id  uuid NOT NULL,
    replaced_at timestamptz NOT NULL,
    replaced_by text,
    definition jsonb NOT NULL,
    payload    bytea,
    PRIMARY KEY (shard, job_id, revision)
);
COMMENT ON TABLE betimes.job_revisions IS 'Definitions as they were before an edit; the current one is in jobs.';

CREATE TABLE betimes.decisions (
    shard      smallint NOT NULL,
    job_id     uuid NOT NULL,
    fire_at    timestamptz NOT NULL,
    -- A long gap is one row: from fire_at up to and including until_at, `fires` times.
    until_at   timestamptz,
    fires      bigint NOT NULL DEFAULT 1 CHECK (fires > 0),
    tenant_id  uuid NOT NULL,
    decided_at timestamptz NOT NULL,
    revision   integer NOT NULL,
    code       text NOT NULL,
    detail     jsonb,
    PRIMARY KEY (shard, job_id, fire_at)
) PARTITION BY RANGE (fire_at);
COMMENT ON TABLE betimes.decisions IS 'One row for every fire time that did not become a run, with the reason.';
CREATE TABLE betimes.decisions_default PARTITION OF betimes.decisions DEFAULT;

CREATE TABLE betimes.idempotency (
    shard       smallint NOT NULL,
    tenant_id   uuid NOT NULL,
    key         text NOT NULL,
    -- Part of the key because it is the partition; the writer covers both days around midnight.
    day         date NOT NULL,
    fingerprint bytea NOT NULL,
    status      smallint,
    headers     jsonb,
    body        bytea,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (shard, tenant_id, key, day)
) PARTITION BY RANGE (day);
CREATE TABLE betimes.idempotency_default PARTITION OF betimes.idempotency DEFAULT;

CREATE TABLE betimes.dedupe (
    shard      smallint NOT NULL,
    tenant_id  uuid NOT NULL,
    key        text NOT NULL,
    holder     uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (shard, tenant_id, key)
);
COMMENT ON TABLE betimes.dedupe IS 'Business keys: which job or run holds one, and until when.';
CREATE INDEX dedupe_expires_idx ON betimes.dedupe (shard, expires_at);
