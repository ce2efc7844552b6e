-- What happened, for those who asked to be told and for those who check later.

CREATE TABLE betimes.outbox (
    shard      smallint NOT NULL,
    id         uuid NOT NULL,
    tenant_id  uuid NOT NULL,
    type       text NOT NULL,
    subject    text NOT NULL,
    body       jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (shard, id)
) PARTITION BY RANGE (id);
CREATE INDEX outbox_tenant_idx ON betimes.outbox (tenant_id, id);
CREATE TABLE betimes.outbox_default PARTITION OF betimes.outbox DEFAULT;

CREATE TABLE betimes.deliveries (
    shard       smallint NOT NULL,
    event_id    uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    due_at      timestamptz,
    attempt     smallint NOT NULL DEFAULT 0,
    state       smallint NOT NULL DEFAULT 0,
    response    jsonb,
    finished_at timestamptz,
    PRIMARY KEY (shard, event_id, endpoint_id)
);
CREATE INDEX deliveries_due_idx ON betimes.deliveries (shard, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE betimes.audit (
    shard      smallint NOT NULL,
    tenant_id  uuid NOT NULL,
    -- Counts up without gaps per tenant; each row's digest covers the one before it.
    number     bigint NOT NULL,
    at         timestamptz NOT NULL,
    actor      jsonb NOT NULL,
    action     text NOT NULL,
    resource   text NOT NULL,
    request_id text,
    before     jsonb,
    after      jsonb,
    digest     bytea NOT NULL,
    PRIMARY KEY (shard, tenant_id, number)
);
