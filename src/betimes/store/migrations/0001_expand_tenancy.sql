-- Who owns things, and what they may do.
-- These are reference tables: small, the same in every cell, and therefore without a shard.

CREATE TABLE betimes.cluster (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    shards      smallint NOT NULL CHECK (shards BETWEEN 1 AND 4096),
    paused_at   timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE betimes.cluster IS 'One row: what was fixed when this cell was made.';

CREATE TABLE betimes.tenants (
    id           uuid PRIMARY KEY,
    slug         text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    name         text NOT NULL,
    timezone     text NOT NULL DEFAULT 'UTC',
    plan         text NOT NULL DEFAULT 'standard',
    state        smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    state_reason text,
    weight       real NOT NULL DEFAULT 1 CHECK (weight > 0),
    quotas       jsonb NOT NULL DEFAULT '{}',
    settings     jsonb NOT NULL DEFAULT '{}',
    revision     integer NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);

INSERT INTO betimes.tenants (id, slug, name)
VALUES ('00000000-0000-8000-8000-000000000001', 'default', 'Default');

CREATE TABLE betimes.api_keys (
    id           text PRIMARY KEY,
    tenant_id    uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    name         text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('sk', 'wk', 'rk', 'ak')),
    digest       bytea NOT NULL,
    scopes       text[] NOT NULL DEFAULT '{}',
    queues       text[],
    networks     cidr[],
    created_at   timestamptz NOT NULL DEFAULT now(),
    created_by   text,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    replaces     text
);
CREATE INDEX api_keys_tenant_idx ON betimes.api_keys (tenant_id, created_at);

CREATE TABLE betimes.queues (
    tenant_id       uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    name            text NOT NULL,
    weight          real NOT NULL DEFAULT 1 CHECK (weight > 0),
    max_concurrency integer CHECK (max_concurrency >= 0),
    rate_limit      integer CHECK (rate_limit > 0),
    rate_per_ms     bigint CHECK (rate_per_ms > 0),
    fairness        text NOT NULL DEFAULT 'tenant' CHECK (fairness IN ('tenant', 'key', 'none')),
    settings        jsonb NOT NULL DEFAULT '{}',
    paused_at       timestamptz,
    paused_until    timestamptz,
    paused_reason   text,
    draining        boolean NOT NULL DEFAULT false,
    revision        integer NOT NULL DEFAULT 1,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE betimes.limits (
    tenant_id    uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    kind         text NOT NULL,
    key          text NOT NULL,
    max_inflight integer CHECK (max_inflight >= 0),
    rate_limit   integer CHECK (rate_limit > 0),
    rate_per_ms  bigint CHECK (rate_per_ms > 0),
    tokens       double precision,
    refilled_at  timestamptz,
    PRIMARY KEY (tenant_id, kind, key)
);
COMMENT ON TABLE betimes.limits IS 'Ceilings and token buckets; what is in flight is counted from leased parcels, never here.';

CREATE TABLE betimes.breakers (
    tenant_id   uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    origin      text NOT NULL,
    state       smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 2),
    failures    integer NOT NULL DEFAULT 0,
    opened_at   timestamptz,
    probe_at    timestamptz,
    probe_by    uuid,
    window_data jsonb NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, origin)
);

CREATE TABLE betimes.endpoints (
    tenant_id   uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    id          uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('webhook', 'email', 'chat')),
    address     text NOT NULL,
    event_types text[] NOT NULL DEFAULT '{}',
    filter      jsonb NOT NULL DEFAULT '{}',
    secret      bytea,
    settings    jsonb NOT NULL DEFAULT '{}',
    disabled_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
