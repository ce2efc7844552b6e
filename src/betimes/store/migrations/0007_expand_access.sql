-- Two roles, neither owner nor superuser: the API sees one tenant at a time, the system sees all.
-- The login role of the service is a member of both: its sessions act as the system, and a transaction
-- for a tenant changes to the API's role for as long as it lasts.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['betimes_api', 'betimes_system'] LOOP
        -- Where the login may neither make nor grant roles, an administrator has done both beforehand.
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another database of this server has just made it
            END;
        END IF;
        IF NOT pg_has_role(CURRENT_USER, role, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', role);
        END IF;
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA betimes TO betimes_api, betimes_system;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA betimes TO betimes_system;
REVOKE UPDATE, DELETE ON betimes.audit FROM betimes_system;
REVOKE INSERT, UPDATE, DELETE ON betimes.migrations FROM betimes_system;
ALTER DEFAULT PRIVILEGES IN SCHEMA betimes GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO betimes_system;

REVOKE EXECUTE ON FUNCTION betimes.ensure_partition, betimes.drop_partition FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.ensure_partition, betimes.drop_partition TO betimes_system;

GRANT SELECT, INSERT, UPDATE, DELETE ON
    betimes.jobs, betimes.job_revisions, betimes.runs, betimes.parcels, betimes.dead_letters, betimes.decisions,
    betimes.idempotency, betimes.dedupe, betimes.blobs, betimes.queues, betimes.limits, betimes.endpoints,
    betimes.workflows, betimes.workflow_runs, betimes.workflow_nodes, betimes.deliveries, betimes.workers,
    betimes.api_keys
    TO betimes_api;
GRANT SELECT, INSERT ON betimes.attempts, betimes.outbox, betimes.audit TO betimes_api;
GRANT SELECT, UPDATE ON betimes.tenants TO betimes_api;
GRANT SELECT, INSERT, UPDATE ON betimes.breakers TO betimes_api;
GRANT SELECT ON betimes.shards, betimes.cluster, betimes.nodes TO betimes_api;
-- A request may hold a shard's cursor still, FOR SHARE, which asks for the right to update some column.
GRANT UPDATE (swept_through) ON betimes.shards TO betimes_api;

-- The setting of a finished transaction is an empty string, not null: hence nullif.
CREATE FUNCTION betimes.current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT nullif(current_setting('betimes.tenant', true), '')::uuid
$$;

DO $$
DECLARE
    tenant_table text;
    tenant_key   text;
BEGIN
    FOR tenant_table IN
        SELECT c.relname FROM pg_class c
         WHERE c.relnamespace = 'betimes'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
           AND (c.relname = 'tenants' OR EXISTS (
                SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'))
         ORDER BY 1
    LOOP
        tenant_key := CASE tenant_table WHEN 'tenants' THEN 'id' ELSE 'tenant_id' END;
        EXECUTE format('ALTER TABLE betimes.%I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE betimes.%I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('CREATE POLICY own_tenant ON betimes.%I TO betimes_api '
                       'USING (%I = betimes.current_tenant()) WITH CHECK (%I = betimes.current_tenant())',
                       tenant_table, tenant_key, tenant_key);
        EXECUTE format('CREATE POLICY whole_system ON betimes.%I TO betimes_system USING (true) WITH CHECK (true)',
                       tenant_table);
    END LOOP;
END
$$;
