-- Rules that say when somebody is to be told that something is not as it should be, and the episodes they made.

CREATE TABLE betimes.alert_rules (
    tenant_id     uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    name          text NOT NULL,
    condition     text NOT NULL,
    threshold     double precision NOT NULL,
    window_ms     bigint NOT NULL CHECK (window_ms > 0),
    for_ms        bigint NOT NULL CHECK (for_ms >= 0),
    severity      text NOT NULL,
    jobs          uuid[] NOT NULL DEFAULT '{}',
    queues        text[] NOT NULL DEFAULT '{}',
    targets       text[] NOT NULL DEFAULT '{}',
    disabled      boolean NOT NULL DEFAULT false,
    -- Whoever moves it on looks at the rule; a watcher that dies has skipped one look.
    next_check_at timestamptz NOT NULL,
    checked_at    timestamptz,
    revision      integer NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL,
    created_by    text,
    updated_at    timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, name)
) WITH (fillfactor = 50);
CREATE INDEX alert_rules_check_idx ON betimes.alert_rules (next_check_at) WHERE NOT disabled;

CREATE TABLE betimes.alerts (
    shard       smallint NOT NULL,
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    rule        text NOT NULL,
    condition   text NOT NULL,
    subject     text NOT NULL,
    severity    text NOT NULL,
    -- 0 holds, but not yet for long enough; 1 firing; 2 over
    state       smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
    is_told     boolean NOT NULL DEFAULT false,
    value       double precision NOT NULL,
    threshold   double precision NOT NULL,
    since       timestamptz NOT NULL,
    fired_at    timestamptz,
    resolved_at timestamptz,
    PRIMARY KEY (shard, id),
    CONSTRAINT alerts_over_means_resolved CHECK ((resolved_at IS NOT NULL) = (state = 2))
);
COMMENT ON TABLE betimes.alerts IS 'Episodes: from when the condition of a rule held for a subject until it did no longer.';
-- One open episode for each rule and subject; the shard is a digest of both.
CREATE UNIQUE INDEX alerts_open_idx ON betimes.alerts (shard, tenant_id, rule, subject) WHERE resolved_at IS NULL;
CREATE INDEX alerts_tenant_idx ON betimes.alerts (tenant_id, id);
CREATE INDEX alerts_rule_idx ON betimes.alerts (tenant_id, rule) WHERE resolved_at IS NULL;
CREATE INDEX alerts_resolved_idx ON betimes.alerts (shard, resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE betimes.silences (
    tenant_id  uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    id         uuid NOT NULL,
    rule       text,
    subject    text,
    reason     text NOT NULL,
    until      timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text,
    PRIMARY KEY (tenant_id, id)
);

-- Fires without a run are looked for by those who want to be told of them.
CREATE INDEX decisions_tenant_idx ON betimes.decisions (tenant_id, decided_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.alert_rules, betimes.silences TO betimes_api;
GRANT SELECT, UPDATE ON betimes.alerts TO betimes_api;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['alert_rules', 'alerts', 'silences'] LOOP
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
