-- Who wants to be told, what waits to be told to them, and how far events have been handed out.

-- When the database received an event, by its own clock: ids carry the clocks of many machines, and whoever follows
-- events must not miss one because a clock was wrong. A row becomes visible at most one transaction later.
ALTER TABLE betimes.outbox ADD COLUMN arrived_at timestamptz NOT NULL DEFAULT statement_timestamp();
CREATE INDEX outbox_arrived_idx ON betimes.outbox (tenant_id, arrived_at, id);

ALTER TABLE betimes.endpoints
    ADD COLUMN name            text NOT NULL DEFAULT '',
    -- A change of the version changes what is signed with; the one before is good until `secret_until`.
    ADD COLUMN secret_version  integer NOT NULL DEFAULT 1 CHECK (secret_version > 0),
    ADD COLUMN secret_until    timestamptz,
    -- Made for the callback of a job or run, and told of nothing else.
    ADD COLUMN is_callback     boolean NOT NULL DEFAULT false,
    ADD COLUMN wants_successes boolean NOT NULL DEFAULT false,
    -- Events that arrived earlier are none of its business.
    ADD COLUMN listens_since   timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN disabled_reason text,
    ADD COLUMN revision        integer NOT NULL DEFAULT 1,
    ADD COLUMN created_by      text,
    ADD COLUMN updated_at      timestamptz NOT NULL DEFAULT now();
-- Who wants to know of successes: asked with every flush of every worker, and mostly empty.
CREATE INDEX endpoints_successes_idx ON betimes.endpoints (tenant_id) WHERE wants_successes AND disabled_at IS NULL;

CREATE TABLE betimes.routings (
    tenant_id      uuid PRIMARY KEY REFERENCES betimes.tenants ON DELETE CASCADE,
    routed_through timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE betimes.routings IS 'How far the events of each tenant with endpoints have been handed out, by the time of their arrival.';

CREATE TABLE betimes.mailboxes (
    shard           smallint NOT NULL,
    endpoint_id     uuid NOT NULL,
    tenant_id       uuid NOT NULL,
    -- Never later than the first delivery that waits; null when none does, or the endpoint is disabled.
    next_due_at     timestamptz,
    owner           uuid,
    lease_until     timestamptz,
    fence           integer NOT NULL DEFAULT 0,
    failures        integer NOT NULL DEFAULT 0,
    failing_since   timestamptz,
    held_until      timestamptz,
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text,
    PRIMARY KEY (shard, endpoint_id),
    CONSTRAINT mailboxes_owned_until CHECK ((owner IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE betimes.mailboxes IS 'What waits for one endpoint, who empties it, and how it fares.';
CREATE INDEX mailboxes_due_idx ON betimes.mailboxes (next_due_at) WHERE next_due_at IS NOT NULL;

-- Nothing was ever written into the first sketch of this table.
DROP TABLE betimes.deliveries;
CREATE TABLE betimes.deliveries (
    -- The shard of the endpoint, so that whoever empties a mailbox reads one shard.
    shard        smallint NOT NULL,
    -- A function of event and endpoint: the same event is never two deliveries to the same endpoint.
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL,
    endpoint_id  uuid NOT NULL,
    event_id     uuid NOT NULL,
    event_type   text NOT NULL,
    -- Null when it is over.
    due_at       timestamptz,
    state        smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
    attempt      smallint NOT NULL DEFAULT 0,
    is_test      boolean NOT NULL DEFAULT false,
    status       smallint,
    error        text,
    response     jsonb,
    created_at   timestamptz NOT NULL,
    attempted_at timestamptz,
    finished_at  timestamptz,
    PRIMARY KEY (shard, id),
    CONSTRAINT deliveries_wait_or_are_over CHECK ((due_at IS NULL) = (state <> 0))
) PARTITION BY RANGE (id);
COMMENT ON TABLE betimes.deliveries IS 'An event on its way to an endpoint: waiting, delivered or given up.';
CREATE INDEX deliveries_waiting_idx ON betimes.deliveries (shard, endpoint_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_endpoint_idx ON betimes.deliveries (shard, endpoint_id, id);
CREATE TABLE betimes.deliveries_default PARTITION OF betimes.deliveries DEFAULT;

CREATE OR REPLACE FUNCTION betimes.partition_bound(parent text, day date) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN parent IN ('runs', 'attempts', 'outbox', 'deliveries') THEN
            (lpad(to_hex((extract(epoch FROM day::timestamp) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid::text
        WHEN parent = 'decisions' THEN day::text || ' 00:00:00+00'
        ELSE day::text
    END
$$;

CREATE OR REPLACE FUNCTION betimes.partition_storage(parent text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE parent
        -- Room for the one update in a run's life on the same page. Insert-driven vacuums are put off:
        -- today's partition is vacuumed for its updates, and yesterday's once.
        WHEN 'runs' THEN 'fillfactor = 40, autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0'
        WHEN 'deliveries' THEN 'fillfactor = 60'
        ELSE 'fillfactor = 90'
    END
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON betimes.deliveries, betimes.mailboxes TO betimes_api;
GRANT SELECT, INSERT ON betimes.routings TO betimes_api;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['routings', 'mailboxes', 'deliveries'] LOOP
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
