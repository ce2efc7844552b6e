-- When a tenant was told last that a quota is nearly or wholly used: once an hour is news, every refusal would be noise.
CREATE TABLE betimes.quota_news (
    tenant_id uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    quota     text NOT NULL,
    type      text NOT NULL,
    told_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, quota, type)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.quota_news TO betimes_api;
ALTER TABLE betimes.quota_news ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.quota_news FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.quota_news TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.quota_news TO betimes_system USING (true) WITH CHECK (true);
