-- What handlers accept: workers declare it, whoever creates work is held to it. Of each handler every
-- schema is kept that some worker may still have, because old and new workers run side by side.

CREATE TABLE betimes.handler_schemas (
    tenant_id   uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    handler     text NOT NULL,
    digest      text NOT NULL,
    schema      text NOT NULL,
    declared_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, handler, digest)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.handler_schemas TO betimes_api;
ALTER TABLE betimes.handler_schemas ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.handler_schemas FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.handler_schemas TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.handler_schemas TO betimes_system USING (true) WITH CHECK (true);
