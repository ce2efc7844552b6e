-- Named calendars. A job that names one carries a copy of it in its schedule, so that planning reads nothing
-- else; `options.calendars` of the job tells which revision of which calendar the copies are.

CREATE TABLE betimes.calendars (
    tenant_id   uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    name        text NOT NULL,
    dates       text[] NOT NULL DEFAULT '{}',
    weekdays    text[] NOT NULL DEFAULT '{}',
    description text NOT NULL DEFAULT '',
    revision    integer NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
CREATE INDEX jobs_calendars_idx ON betimes.jobs (tenant_id, id) WHERE options ? 'calendars';

GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.calendars TO betimes_api;
ALTER TABLE betimes.calendars ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.calendars FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.calendars TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.calendars TO betimes_system USING (true) WITH CHECK (true);
