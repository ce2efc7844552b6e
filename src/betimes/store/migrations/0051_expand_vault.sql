-- Secrets of tenants, and the keys that seal them.
--
-- A tenant's data keys are kept wrapped under a master key that is never in the database. Whoever deletes them has
-- erased everything that was sealed under them, wherever copies of it lie.

CREATE TABLE betimes.data_keys (
    tenant_id  uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    version    integer NOT NULL CHECK (version >= 1),
    master     bytea NOT NULL,
    wrapped    bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, version)
);
COMMENT ON COLUMN betimes.data_keys.master IS 'Which master key wraps it: a digest, not the key.';

CREATE TABLE betimes.secrets (
    tenant_id   uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    name        text NOT NULL,
    version     integer NOT NULL CHECK (version >= 1),
    key_version integer NOT NULL,
    created_at  timestamptz NOT NULL,
    created_by  text,
    sealed      bytea NOT NULL,
    PRIMARY KEY (tenant_id, name, version)
);

ALTER TABLE betimes.cluster ADD COLUMN master_check bytea;
COMMENT ON COLUMN betimes.cluster.master_check IS 'Which master key this cell is used with, so that a node with another one notices it.';

GRANT SELECT, INSERT ON betimes.data_keys TO betimes_api;
GRANT SELECT, INSERT, DELETE ON betimes.secrets TO betimes_api;

ALTER TABLE betimes.data_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.data_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.data_keys TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.data_keys TO betimes_system USING (true) WITH CHECK (true);

ALTER TABLE betimes.secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.secrets TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.secrets TO betimes_system USING (true) WITH CHECK (true);
