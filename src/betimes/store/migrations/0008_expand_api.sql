-- What the public API keeps: heads of the audit chains, people, long operations, what workers report beside
-- their outcomes.

ALTER TABLE betimes.cluster ADD COLUMN pepper_check bytea;
COMMENT ON COLUMN betimes.cluster.pepper_check IS 'A digest under the pepper, so that a node with another pepper notices it.';

CREATE TABLE betimes.audit_heads (
    shard     smallint NOT NULL,
    tenant_id uuid NOT NULL,
    number    bigint NOT NULL,
    digest    bytea NOT NULL,
    PRIMARY KEY (shard, tenant_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE betimes.audit_heads IS 'The last number and digest of each audit chain; a chain is the acts of one tenant in one shard.';

CREATE TABLE betimes.members (
    tenant_id  uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    id         uuid NOT NULL,
    email      text NOT NULL,
    name       text NOT NULL,
    role       text NOT NULL DEFAULT 'viewer' CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    revision   integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX members_email_idx ON betimes.members (tenant_id, email);

CREATE TABLE betimes.operations (
    shard       smallint NOT NULL,
    tenant_id   uuid NOT NULL,
    id          uuid NOT NULL,
    kind        text NOT NULL,
    state       smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    done        bigint NOT NULL DEFAULT 0,
    total       bigint,
    request     jsonb NOT NULL,
    result      jsonb,
    error       jsonb,
    cursor      text,
    worked_by   uuid,
    worked_until timestamptz,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    expires_at  timestamptz NOT NULL,
    created_by  text,
    PRIMARY KEY (shard, tenant_id, id)
);
CREATE INDEX operations_tenant_idx ON betimes.operations (tenant_id, id);
CREATE INDEX operations_open_idx ON betimes.operations (shard, created_at) WHERE state < 2;
CREATE INDEX operations_expires_idx ON betimes.operations (shard, expires_at);

CREATE TABLE betimes.run_notes (
    shard      smallint NOT NULL,
    run_id     uuid NOT NULL,
    tenant_id  uuid NOT NULL,
    fence      integer NOT NULL,
    percent    real,
    message    text,
    checkpoint bytea,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, run_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE betimes.run_notes IS 'What a worker has said about a run it holds: progress, and a checkpoint for the next attempt.';
CREATE INDEX run_notes_updated_idx ON betimes.run_notes (shard, updated_at);

CREATE TABLE betimes.run_logs (
    shard     smallint NOT NULL,
    run_id    uuid NOT NULL,
    seq       integer NOT NULL,
    tenant_id uuid NOT NULL,
    attempt   smallint NOT NULL,
    at        timestamptz NOT NULL,
    level     text NOT NULL,
    message   text NOT NULL,
    fields    jsonb,
    PRIMARY KEY (shard, run_id, seq)
);
CREATE INDEX run_logs_at_idx ON betimes.run_logs (shard, at);

CREATE INDEX audit_tenant_idx ON betimes.audit (tenant_id, at, shard, number);
CREATE INDEX workers_tenant_idx ON betimes.workers (tenant_id, id);

GRANT SELECT, INSERT, UPDATE ON betimes.audit_heads TO betimes_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.members, betimes.operations, betimes.run_notes TO betimes_api;
GRANT SELECT, INSERT ON betimes.run_logs TO betimes_api;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['audit_heads', 'members', 'operations', 'run_notes', 'run_logs'] LOOP
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
