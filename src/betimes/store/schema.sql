-- The schema as the migrations make it. Written by `make schema`; a test keeps it equal.
-- Long because it is the whole of it, for reading and searching.

CREATE SCHEMA betimes;

CREATE FUNCTION betimes.current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT nullif(current_setting('betimes.tenant', true), '')::uuid
$$;

CREATE FUNCTION betimes.drop_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    child text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass(format('betimes.%I', child)) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE betimes.%I', child);
    RETURN true;
END
$$;

CREATE FUNCTION betimes.ensure_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
DECLARE
    child     text := parent || '_' || to_char(day, 'YYYYMMDD');
    fallback  text := parent || '_default';
    key       text;
    lower_end text;
    upper_end text;
BEGIN
    IF to_regclass(format('betimes.%I', child)) IS NOT NULL THEN
        RETURN false;
    END IF;
    SELECT a.attname INTO STRICT key
      FROM pg_partitioned_table p
      JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
     WHERE p.partrelid = format('betimes.%I', parent)::regclass;
    lower_end := betimes.partition_bound(parent, day);
    upper_end := betimes.partition_bound(parent, day + 1);
    -- Taken first and strongest, so that nobody can put a row of this day into the default meanwhile.
    EXECUTE format('LOCK TABLE betimes.%I IN ACCESS EXCLUSIVE MODE', fallback);
    -- Asked again: whoever held the lock before us may have made it.
    IF to_regclass(format('betimes.%I', child)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE betimes.%I (LIKE betimes.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (%s)',
                   child, parent, betimes.partition_storage(parent));
    EXECUTE format('WITH moved AS (DELETE FROM betimes.%I WHERE %I >= %L AND %I < %L RETURNING *) '
                   'INSERT INTO betimes.%I SELECT * FROM moved',
                   fallback, key, lower_end, key, upper_end, child);
    EXECUTE format('ALTER TABLE betimes.%I ATTACH PARTITION betimes.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, child, lower_end, upper_end);
    RETURN true;
END
$$;

CREATE FUNCTION betimes.id_text(prefix text, id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT prefix || '_' || string_agg(
               substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM 5 * place + 1 FOR 5)::bit(5)::integer + 1, 1),
               '' ORDER BY place)
      FROM (SELECT '00' || ('x' || replace(id::text, '-', ''))::bit(128)::text AS bits) AS number,
           generate_series(0, 25) AS place
$$;

CREATE FUNCTION betimes.new_id(shard smallint) RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12, '0') || '8' || lpad(to_hex(shard::integer), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17, 16))::uuid
$$;

CREATE FUNCTION betimes.partition_bound(parent text, day date) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE
        WHEN parent IN ('runs', 'attempts', 'outbox', 'deliveries') THEN
            (lpad(to_hex((extract(epoch FROM day::timestamp) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid::text
        WHEN parent = 'decisions' THEN day::text || ' 00:00:00+00'
        ELSE day::text
    END
$$;

CREATE FUNCTION betimes.partition_storage(parent text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE parent
        -- Room for the one update in a run's life on the same page. Insert-driven vacuums are put off:
        -- today's partition is vacuumed for its updates, and yesterday's once.
        WHEN 'runs' THEN 'fillfactor = 40, autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0'
        WHEN 'deliveries' THEN 'fillfactor = 60'
        ELSE 'fillfactor = 90'
    END
$$;

CREATE TABLE betimes.api_keys (
    id text NOT NULL,
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    digest bytea NOT NULL,
    scopes text[] DEFAULT '{}'::text[] NOT NULL,
    queues text[],
    networks cidr[],
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    replaces text,
    CONSTRAINT api_keys_kind_check CHECK ((kind = ANY (ARRAY['sk'::text, 'wk'::text, 'rk'::text, 'ak'::text])))
);

ALTER TABLE ONLY betimes.api_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.attempts (
    shard smallint NOT NULL,
    run_id uuid NOT NULL,
    number smallint NOT NULL,
    tenant_id uuid NOT NULL,
    worker_id uuid,
    fence integer NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone NOT NULL,
    next_retry_at timestamp with time zone,
    outcome smallint NOT NULL,
    error jsonb,
    http jsonb
)
PARTITION BY RANGE (run_id);

ALTER TABLE ONLY betimes.attempts FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.attempts IS 'Attempts that failed, timed out or were lost; the last good one is in the run row.';

CREATE TABLE betimes.attempts_default (
    shard smallint CONSTRAINT attempts_shard_not_null NOT NULL,
    run_id uuid CONSTRAINT attempts_run_id_not_null NOT NULL,
    number smallint CONSTRAINT attempts_number_not_null NOT NULL,
    tenant_id uuid CONSTRAINT attempts_tenant_id_not_null NOT NULL,
    worker_id uuid,
    fence integer CONSTRAINT attempts_fence_not_null NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone CONSTRAINT attempts_finished_at_not_null NOT NULL,
    next_retry_at timestamp with time zone,
    outcome smallint CONSTRAINT attempts_outcome_not_null NOT NULL,
    error jsonb,
    http jsonb
);

CREATE TABLE betimes.audit (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    number bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    actor jsonb NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    request_id text,
    before jsonb,
    after jsonb,
    digest bytea NOT NULL
);

ALTER TABLE ONLY betimes.audit FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.audit_heads (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    number bigint NOT NULL,
    digest bytea NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.audit_heads FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.audit_heads IS 'The last number and digest of each audit chain; a chain is the acts of one tenant in one shard.';

CREATE TABLE betimes.blobs (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    size bigint NOT NULL,
    key_version integer DEFAULT 0 NOT NULL,
    media_type text DEFAULT 'application/json'::text NOT NULL,
    location text,
    nonce bytea,
    content bytea,
    CONSTRAINT blobs_size_check CHECK ((size >= 0))
);

ALTER TABLE ONLY betimes.blobs FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.breakers (
    tenant_id uuid NOT NULL,
    origin text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    opened_at timestamp with time zone,
    probe_at timestamp with time zone,
    probe_by uuid,
    window_data jsonb DEFAULT '{}'::jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT breakers_state_check CHECK (((state >= 0) AND (state <= 2)))
);

ALTER TABLE ONLY betimes.breakers FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.calendars (
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    dates text[] DEFAULT '{}'::text[] NOT NULL,
    weekdays text[] DEFAULT '{}'::text[] NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY betimes.calendars FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.catchups (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    found_at timestamp with time zone NOT NULL,
    paced_through timestamp with time zone NOT NULL,
    first_fire_at timestamp with time zone NOT NULL,
    last_fire_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    runs bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    dropped bigint DEFAULT 0 NOT NULL,
    per_second double precision NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    decided_by text,
    reason text,
    CONSTRAINT catchups_held_check CHECK ((held >= 0)),
    CONSTRAINT catchups_per_second_check CHECK ((per_second > (0)::double precision)),
    CONSTRAINT catchups_runs_check CHECK ((runs >= 0)),
    CONSTRAINT catchups_state_check CHECK (((state >= 0) AND (state <= 4)))
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.catchups FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.catchups IS 'Episodes of catching up: how much was missed, what of it waits for approval, how far it is spread out.';

COMMENT ON COLUMN betimes.catchups.paced_through IS 'Up to when its runs become visible, one after the other; the next one follows.';

COMMENT ON COLUMN betimes.catchups.state IS '0 open, 1 waits for approval, 2 approved, 3 dropped, 4 over.';

CREATE TABLE betimes.cluster (
    one boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    shards smallint NOT NULL,
    paused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    pepper_check bytea,
    paused_reason text,
    master_check bytea,
    CONSTRAINT cluster_one_check CHECK (one),
    CONSTRAINT cluster_shards_check CHECK (((shards >= 1) AND (shards <= 4096)))
);

COMMENT ON TABLE betimes.cluster IS 'One row: what was fixed when this cell was made.';

COMMENT ON COLUMN betimes.cluster.pepper_check IS 'A digest under the pepper, so that a node with another pepper notices it.';

COMMENT ON COLUMN betimes.cluster.master_check IS 'Which master key this cell is used with, so that a node with another one notices it.';

CREATE TABLE betimes.data_keys (
    tenant_id uuid NOT NULL,
    version integer NOT NULL,
    master bytea NOT NULL,
    wrapped bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT data_keys_version_check CHECK ((version >= 1))
);

ALTER TABLE ONLY betimes.data_keys FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.data_keys.master IS 'Which master key wraps it: a digest, not the key.';

CREATE TABLE betimes.dead_letters (
    shard smallint NOT NULL,
    run_id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    job_id uuid,
    dead_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    attempts smallint NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    queue text NOT NULL,
    handler text,
    fingerprint text NOT NULL,
    reason text NOT NULL,
    error jsonb,
    note text,
    assignee text,
    CONSTRAINT dead_letters_state_check CHECK (((state >= 0) AND (state <= 2)))
);

ALTER TABLE ONLY betimes.dead_letters FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.decisions (
    shard smallint NOT NULL,
    job_id uuid NOT NULL,
    fire_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    fires bigint DEFAULT 1 NOT NULL,
    tenant_id uuid NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    revision integer NOT NULL,
    code text NOT NULL,
    detail jsonb,
    CONSTRAINT decisions_fires_check CHECK ((fires > 0))
)
PARTITION BY RANGE (fire_at);

ALTER TABLE ONLY betimes.decisions FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.decisions IS 'One row for every fire time that did not become a run, with the reason.';

CREATE TABLE betimes.decisions_default (
    shard smallint CONSTRAINT decisions_shard_not_null NOT NULL,
    job_id uuid CONSTRAINT decisions_job_id_not_null NOT NULL,
    fire_at timestamp with time zone CONSTRAINT decisions_fire_at_not_null NOT NULL,
    until_at timestamp with time zone,
    fires bigint DEFAULT 1 CONSTRAINT decisions_fires_not_null NOT NULL,
    tenant_id uuid CONSTRAINT decisions_tenant_id_not_null NOT NULL,
    decided_at timestamp with time zone CONSTRAINT decisions_decided_at_not_null NOT NULL,
    revision integer CONSTRAINT decisions_revision_not_null NOT NULL,
    code text CONSTRAINT decisions_code_not_null NOT NULL,
    detail jsonb,
    CONSTRAINT decisions_fires_check CHECK ((fires > 0))
);

CREATE TABLE betimes.dedupe (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    key text NOT NULL,
    holder uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    prune_at timestamp with time zone
);

ALTER TABLE ONLY betimes.dedupe FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.dedupe IS 'Business keys: which job or run holds one, and until when.';

COMMENT ON COLUMN betimes.dedupe.expires_at IS 'The end of its window; the creation itself where it has none.';

COMMENT ON COLUMN betimes.dedupe.prune_at IS 'When to look whether it may go: its window is over, and its holder is not active any more.';

CREATE TABLE betimes.deliveries (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    due_at timestamp with time zone,
    state smallint DEFAULT 0 NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    is_test boolean DEFAULT false NOT NULL,
    status smallint,
    error text,
    response jsonb,
    created_at timestamp with time zone NOT NULL,
    attempted_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT deliveries_state_check CHECK (((state >= 0) AND (state <= 2))),
    CONSTRAINT deliveries_wait_or_are_over CHECK (((due_at IS NULL) = (state <> 0)))
)
PARTITION BY RANGE (id);

ALTER TABLE ONLY betimes.deliveries FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.deliveries IS 'An event on its way to an endpoint: waiting, delivered or given up.';

CREATE TABLE betimes.deliveries_default (
    shard smallint CONSTRAINT deliveries_shard_not_null NOT NULL,
    id uuid CONSTRAINT deliveries_id_not_null NOT NULL,
    tenant_id uuid CONSTRAINT deliveries_tenant_id_not_null NOT NULL,
    endpoint_id uuid CONSTRAINT deliveries_endpoint_id_not_null NOT NULL,
    event_id uuid CONSTRAINT deliveries_event_id_not_null NOT NULL,
    event_type text CONSTRAINT deliveries_event_type_not_null NOT NULL,
    due_at timestamp with time zone,
    state smallint DEFAULT 0 CONSTRAINT deliveries_state_not_null NOT NULL,
    attempt smallint DEFAULT 0 CONSTRAINT deliveries_attempt_not_null NOT NULL,
    is_test boolean DEFAULT false CONSTRAINT deliveries_is_test_not_null NOT NULL,
    status smallint,
    error text,
    response jsonb,
    created_at timestamp with time zone CONSTRAINT deliveries_created_at_not_null NOT NULL,
    attempted_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT deliveries_state_check CHECK (((state >= 0) AND (state <= 2))),
    CONSTRAINT deliveries_wait_or_are_over CHECK (((due_at IS NULL) = (state <> 0)))
);

CREATE TABLE betimes.device_grants (
    digest bytea NOT NULL,
    user_code text NOT NULL,
    name text NOT NULL,
    tenant_id uuid,
    scopes text[] DEFAULT '{}'::text[] NOT NULL,
    answered_by text,
    state smallint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    polled_at timestamp with time zone,
    CONSTRAINT device_grants_state_check CHECK (((state >= 0) AND (state <= 3)))
);

ALTER TABLE ONLY betimes.device_grants FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.endpoints (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,
    event_types text[] DEFAULT '{}'::text[] NOT NULL,
    filter jsonb DEFAULT '{}'::jsonb NOT NULL,
    secret bytea,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    disabled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    secret_version integer DEFAULT 1 NOT NULL,
    secret_until timestamp with time zone,
    is_callback boolean DEFAULT false NOT NULL,
    wants_successes boolean DEFAULT false NOT NULL,
    listens_since timestamp with time zone DEFAULT now() NOT NULL,
    disabled_reason text,
    revision integer DEFAULT 1 NOT NULL,
    created_by text,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT endpoints_kind_check CHECK ((kind = ANY (ARRAY['webhook'::text, 'email'::text, 'chat'::text]))),
    CONSTRAINT endpoints_secret_version_check CHECK ((secret_version > 0))
);

ALTER TABLE ONLY betimes.endpoints FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.gaps (
    shard smallint NOT NULL,
    job_id uuid NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone NOT NULL,
    tenant_id uuid NOT NULL,
    revision integer NOT NULL,
    priority smallint NOT NULL,
    completes boolean DEFAULT false NOT NULL,
    queue text NOT NULL,
    handler text,
    schedule jsonb NOT NULL,
    options jsonb,
    CONSTRAINT gaps_have_a_span CHECK ((from_at <= until_at))
);

ALTER TABLE ONLY betimes.gaps FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.gaps IS 'Missed fires, from the first to the last instant included, that are neither runs nor decisions yet.';

COMMENT ON COLUMN betimes.gaps.completes IS 'The job has no fire left: it is complete when its gap is settled.';

CREATE TABLE betimes.handler_schemas (
    tenant_id uuid NOT NULL,
    handler text NOT NULL,
    digest text NOT NULL,
    schema text NOT NULL,
    declared_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY betimes.handler_schemas FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.idempotency (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    key text NOT NULL,
    day date NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint,
    headers jsonb,
    body bytea,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
PARTITION BY RANGE (day);

ALTER TABLE ONLY betimes.idempotency FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.idempotency_default (
    shard smallint CONSTRAINT idempotency_shard_not_null NOT NULL,
    tenant_id uuid CONSTRAINT idempotency_tenant_id_not_null NOT NULL,
    key text CONSTRAINT idempotency_key_not_null NOT NULL,
    day date CONSTRAINT idempotency_day_not_null NOT NULL,
    fingerprint bytea CONSTRAINT idempotency_fingerprint_not_null NOT NULL,
    status smallint,
    headers jsonb,
    body bytea,
    created_at timestamp with time zone CONSTRAINT idempotency_created_at_not_null NOT NULL,
    expires_at timestamp with time zone CONSTRAINT idempotency_expires_at_not_null NOT NULL
);

CREATE TABLE betimes.job_revisions (
    shard smallint NOT NULL,
    job_id uuid NOT NULL,
    revision integer NOT NULL,
    tenant_id uuid NOT NULL,
    replaced_at timestamp with time zone NOT NULL,
    replaced_by text,
    definition jsonb NOT NULL,
    payload bytea
);

ALTER TABLE ONLY betimes.job_revisions FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.job_revisions IS 'Definitions as they were before an edit; the current one is in jobs.';

CREATE TABLE betimes.jobs (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    next_fire_at timestamp with time zone,
    paused_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    fires bigint DEFAULT 0 NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    priority smallint DEFAULT 5 NOT NULL,
    after_completion smallint DEFAULT 0 NOT NULL,
    job_group text DEFAULT 'default'::text NOT NULL,
    name text,
    queue text DEFAULT 'default'::text NOT NULL,
    handler text,
    tzdata text NOT NULL,
    schedule jsonb NOT NULL,
    target jsonb NOT NULL,
    payload bytea,
    options jsonb,
    state_reason jsonb,
    created_by text,
    CONSTRAINT jobs_after_completion_check CHECK (((after_completion >= 0) AND (after_completion <= 1))),
    CONSTRAINT jobs_only_active_jobs_fire CHECK (((state = 0) OR (next_fire_at IS NULL))),
    CONSTRAINT jobs_priority_check CHECK (((priority >= 0) AND (priority <= 9))),
    CONSTRAINT jobs_revision_check CHECK ((revision > 0)),
    CONSTRAINT jobs_state_check CHECK (((state >= 0) AND (state <= 4)))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE ONLY betimes.jobs FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.limits (
    tenant_id uuid NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    max_inflight integer,
    rate_limit integer,
    rate_per_ms bigint,
    tokens double precision,
    refilled_at timestamp with time zone,
    used_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT limits_max_inflight_check CHECK ((max_inflight >= 0)),
    CONSTRAINT limits_rate_limit_check CHECK ((rate_limit > 0)),
    CONSTRAINT limits_rate_per_ms_check CHECK ((rate_per_ms > 0))
);

ALTER TABLE ONLY betimes.limits FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.limits IS 'Ceilings and token buckets; what is in flight is counted from leased parcels, never here.';

COMMENT ON COLUMN betimes.limits.max_inflight IS 'For kind key: null means what the queue says (per_key_concurrency), else 1.';

COMMENT ON COLUMN betimes.limits.used_at IS 'When somebody last relied on it, to the hour; rows that nobody needs are forgotten a day later.';

CREATE TABLE betimes.mailboxes (
    shard smallint NOT NULL,
    endpoint_id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    next_due_at timestamp with time zone,
    owner uuid,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    held_until timestamp with time zone,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    last_error text,
    CONSTRAINT mailboxes_owned_until CHECK (((owner IS NULL) = (lease_until IS NULL)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000');

ALTER TABLE ONLY betimes.mailboxes FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.mailboxes IS 'What waits for one endpoint, who empties it, and how it fares.';

CREATE TABLE betimes.members (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    role text DEFAULT 'viewer'::text NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    password bytea,
    salt bytea,
    code bytea,
    code_until timestamp with time zone,
    created_by text,
    signed_in_at timestamp with time zone,
    CONSTRAINT members_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'editor'::text, 'admin'::text])))
);

ALTER TABLE ONLY betimes.members FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.members.code IS 'Digest of the one-time code of an invitation.';

CREATE TABLE betimes.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT migrations_kind_check CHECK ((kind = ANY (ARRAY['expand'::text, 'contract'::text])))
);

CREATE TABLE betimes.nodes (
    id uuid NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    tzdata text NOT NULL,
    roles text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    skew_ms double precision,
    draining boolean DEFAULT false NOT NULL,
    drain_at timestamp with time zone
)
WITH (fillfactor='50');

COMMENT ON COLUMN betimes.nodes.drain_at IS 'Since when the node is asked to finish what it holds and to stop.';

CREATE TABLE betimes.operations (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    total bigint,
    request jsonb NOT NULL,
    result jsonb,
    error jsonb,
    cursor text,
    worked_by uuid,
    worked_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    created_by text,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT operations_state_check CHECK (((state >= 0) AND (state <= 4)))
);

ALTER TABLE ONLY betimes.operations FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.outbox (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    body jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    arrived_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL
)
PARTITION BY RANGE (id);

ALTER TABLE ONLY betimes.outbox FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.outbox_default (
    shard smallint CONSTRAINT outbox_shard_not_null NOT NULL,
    id uuid CONSTRAINT outbox_id_not_null NOT NULL,
    tenant_id uuid CONSTRAINT outbox_tenant_id_not_null NOT NULL,
    type text CONSTRAINT outbox_type_not_null NOT NULL,
    subject text CONSTRAINT outbox_subject_not_null NOT NULL,
    body jsonb CONSTRAINT outbox_body_not_null NOT NULL,
    created_at timestamp with time zone CONSTRAINT outbox_created_at_not_null NOT NULL,
    arrived_at timestamp with time zone DEFAULT statement_timestamp() CONSTRAINT outbox_arrived_at_not_null NOT NULL
);

CREATE TABLE betimes.parcels (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    worker_id uuid,
    rank timestamp with time zone NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    deliveries integer DEFAULT 0 NOT NULL,
    shard smallint NOT NULL,
    priority smallint DEFAULT 5 NOT NULL,
    lane smallint DEFAULT 0 NOT NULL,
    queue text NOT NULL,
    run_ids uuid[] NOT NULL,
    fair smallint DEFAULT 0 NOT NULL,
    when_full smallint DEFAULT 0 NOT NULL,
    held smallint DEFAULT 0 NOT NULL,
    slot boolean DEFAULT false NOT NULL,
    held_at timestamp with time zone,
    line uuid,
    gate text,
    episode uuid,
    CONSTRAINT parcels_gated_alone CHECK ((((gate IS NULL) AND (line IS NULL)) OR (cardinality(run_ids) = 1))),
    CONSTRAINT parcels_held_by_nobody CHECK (((held = 0) OR (worker_id IS NULL))),
    CONSTRAINT parcels_held_check CHECK (((held >= 0) AND (held <= 3))),
    CONSTRAINT parcels_held_since CHECK (((held > 0) = (held_at IS NOT NULL))),
    CONSTRAINT parcels_leased_by_somebody CHECK (((worker_id IS NULL) = (lease_until IS NULL))),
    CONSTRAINT parcels_run_ids_check CHECK ((cardinality(run_ids) > 0)),
    CONSTRAINT parcels_slot_is_leased CHECK (((NOT slot) OR (worker_id IS NOT NULL)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='5000');

ALTER TABLE ONLY betimes.parcels FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.parcels.held IS 'Why it is not offered to workers: 0 it is, 1 its gate or line is full, 2 overlap is decided when it is due, 3 it waits for approval.';

COMMENT ON COLUMN betimes.parcels.slot IS 'Leased and admitted through its gate and line: this is what in flight means for them.';

COMMENT ON COLUMN betimes.parcels.line IS 'The job whose runs go one after the other (overlap: buffer_one, buffer_all, cancel_running, replace).';

COMMENT ON COLUMN betimes.parcels.gate IS 'The concurrency key of its one run.';

COMMENT ON COLUMN betimes.parcels.episode IS 'The catch-up it belongs to while it waits for approval.';

CREATE TABLE betimes.queues (
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    weight real DEFAULT 1 NOT NULL,
    max_concurrency integer,
    rate_limit integer,
    rate_per_ms bigint,
    fairness text DEFAULT 'tenant'::text NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    paused_until timestamp with time zone,
    paused_reason text,
    draining boolean DEFAULT false NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queues_fairness_check CHECK ((fairness = ANY (ARRAY['tenant'::text, 'key'::text, 'none'::text]))),
    CONSTRAINT queues_max_concurrency_check CHECK ((max_concurrency >= 0)),
    CONSTRAINT queues_rate_limit_check CHECK ((rate_limit > 0)),
    CONSTRAINT queues_rate_per_ms_check CHECK ((rate_per_ms > 0)),
    CONSTRAINT queues_weight_check CHECK ((weight > (0)::double precision))
);

ALTER TABLE ONLY betimes.queues FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.routings (
    tenant_id uuid NOT NULL,
    routed_through timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.routings FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.routings IS 'How far the events of each tenant with endpoints have been handed out, by the time of their arrival.';

CREATE TABLE betimes.run_logs (
    shard smallint NOT NULL,
    run_id uuid NOT NULL,
    seq integer NOT NULL,
    tenant_id uuid NOT NULL,
    attempt smallint NOT NULL,
    at timestamp with time zone NOT NULL,
    level text NOT NULL,
    message text NOT NULL,
    fields jsonb
);

ALTER TABLE ONLY betimes.run_logs FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.run_notes (
    shard smallint NOT NULL,
    run_id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    fence integer NOT NULL,
    percent real,
    message text,
    checkpoint bytea,
    updated_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.run_notes FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.run_notes IS 'What a worker has said about a run it holds: progress, and a checkpoint for the next attempt.';

CREATE TABLE betimes.runs (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    job_id uuid,
    workflow_run_id uuid,
    worker_id uuid,
    due_at timestamp with time zone NOT NULL,
    fire_at timestamp with time zone,
    created_at timestamp with time zone,
    first_started_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    cancel_at timestamp with time zone,
    revision integer,
    fence integer DEFAULT 0 NOT NULL,
    shard smallint NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    trigger smallint DEFAULT 0 NOT NULL,
    priority smallint DEFAULT 5 NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    queue text NOT NULL,
    handler text,
    node text,
    reason text,
    payload bytea,
    options jsonb,
    result bytea,
    error jsonb,
    overlap smallint DEFAULT 0 NOT NULL,
    fair smallint DEFAULT 0 NOT NULL,
    when_full smallint DEFAULT 0 NOT NULL,
    gate text,
    blocked_by uuid,
    start_by timestamp with time zone,
    CONSTRAINT runs_fair_check CHECK ((fair >= 0)),
    CONSTRAINT runs_finished_means_final CHECK (((finished_at IS NOT NULL) = (state >= 4))),
    CONSTRAINT runs_overlap_check CHECK (((overlap >= 0) AND (overlap <= 5))),
    CONSTRAINT runs_state_check CHECK ((((state >= 0) AND (state <= 9)) AND (state <> 2))),
    CONSTRAINT runs_when_full_check CHECK (((when_full >= 0) AND (when_full <= 1)))
)
PARTITION BY RANGE (id);

ALTER TABLE ONLY betimes.runs FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.runs.overlap IS 'What becomes of it while an earlier run of its job has not ended: 0 allow, 1 skip, 2 buffer_one, 3 buffer_all, 4 cancel_running, 5 replace.';

COMMENT ON COLUMN betimes.runs.fair IS 'The bucket of its fairness key; 0 without one.';

COMMENT ON COLUMN betimes.runs.when_full IS 'What becomes of it while its gate is full: 0 wait, 1 skip.';

COMMENT ON COLUMN betimes.runs.gate IS 'Its concurrency key.';

COMMENT ON COLUMN betimes.runs.blocked_by IS 'The run that stood in the way when this one was skipped for overlap.';

COMMENT ON COLUMN betimes.runs.start_by IS 'Handed out later than this for the first time, it expires instead of running.';

CREATE TABLE betimes.runs_default (
    id uuid CONSTRAINT runs_id_not_null NOT NULL,
    tenant_id uuid CONSTRAINT runs_tenant_id_not_null NOT NULL,
    job_id uuid,
    workflow_run_id uuid,
    worker_id uuid,
    due_at timestamp with time zone CONSTRAINT runs_due_at_not_null NOT NULL,
    fire_at timestamp with time zone,
    created_at timestamp with time zone,
    first_started_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    cancel_at timestamp with time zone,
    revision integer,
    fence integer DEFAULT 0 CONSTRAINT runs_fence_not_null NOT NULL,
    shard smallint CONSTRAINT runs_shard_not_null NOT NULL,
    state smallint DEFAULT 0 CONSTRAINT runs_state_not_null NOT NULL,
    trigger smallint DEFAULT 0 CONSTRAINT runs_trigger_not_null NOT NULL,
    priority smallint DEFAULT 5 CONSTRAINT runs_priority_not_null NOT NULL,
    attempt smallint DEFAULT 0 CONSTRAINT runs_attempt_not_null NOT NULL,
    queue text CONSTRAINT runs_queue_not_null NOT NULL,
    handler text,
    node text,
    reason text,
    payload bytea,
    options jsonb,
    result bytea,
    error jsonb,
    overlap smallint DEFAULT 0 CONSTRAINT runs_overlap_not_null NOT NULL,
    fair smallint DEFAULT 0 CONSTRAINT runs_fair_not_null NOT NULL,
    when_full smallint DEFAULT 0 CONSTRAINT runs_when_full_not_null NOT NULL,
    gate text,
    blocked_by uuid,
    start_by timestamp with time zone,
    CONSTRAINT runs_fair_check CHECK ((fair >= 0)),
    CONSTRAINT runs_finished_means_final CHECK (((finished_at IS NOT NULL) = (state >= 4))),
    CONSTRAINT runs_overlap_check CHECK (((overlap >= 0) AND (overlap <= 5))),
    CONSTRAINT runs_state_check CHECK ((((state >= 0) AND (state <= 9)) AND (state <> 2))),
    CONSTRAINT runs_when_full_check CHECK (((when_full >= 0) AND (when_full <= 1)))
);

CREATE TABLE betimes.secrets (
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    key_version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    sealed bytea NOT NULL,
    CONSTRAINT secrets_version_check CHECK ((version >= 1))
);

ALTER TABLE ONLY betimes.secrets FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.sessions (
    digest bytea NOT NULL,
    tenant_id uuid NOT NULL,
    member_id uuid,
    key_id text,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT sessions_of_somebody CHECK (((member_id IS NULL) <> (key_id IS NULL)))
)
WITH (fillfactor='70');

ALTER TABLE ONLY betimes.sessions FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.sessions IS 'Browsers that signed in; only a digest of the cookie is kept.';

CREATE TABLE betimes.shards (
    shard smallint NOT NULL,
    owner uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    planned_through timestamp with time zone,
    published_through timestamp with time zone,
    swept_through timestamp with time zone,
    tzdata text,
    expired_through timestamp with time zone,
    CONSTRAINT shards_owned_until CHECK (((owner IS NULL) = (lease_until IS NULL)))
)
WITH (fillfactor='20', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200');

COMMENT ON COLUMN betimes.shards.expired_through IS 'Every run that had to start by then has been looked at.';

CREATE TABLE betimes.tenants (
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    plan text DEFAULT 'standard'::text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    state_reason text,
    weight real DEFAULT 1 NOT NULL,
    quotas jsonb DEFAULT '{}'::jsonb NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tenants_slug_check CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'::text)),
    CONSTRAINT tenants_state_check CHECK (((state >= 0) AND (state <= 3))),
    CONSTRAINT tenants_weight_check CHECK ((weight > (0)::double precision))
);

ALTER TABLE ONLY betimes.tenants FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workers (
    id uuid NOT NULL,
    tenant_id uuid,
    node_id uuid,
    name text NOT NULL,
    version text DEFAULT ''::text NOT NULL,
    queues text[] NOT NULL,
    handlers text[] DEFAULT '{}'::text[] NOT NULL,
    slots integer NOT NULL,
    busy integer DEFAULT 0 NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    skew_ms double precision,
    draining boolean DEFAULT false NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT workers_slots_check CHECK ((slots > 0))
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.workers FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workflow_nodes (
    shard smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    node text NOT NULL,
    tenant_id uuid NOT NULL,
    run_id uuid,
    state smallint DEFAULT 0 NOT NULL,
    waits_for integer NOT NULL,
    output bytea,
    detail jsonb,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT workflow_nodes_waits_for_check CHECK ((waits_for >= 0))
)
WITH (fillfactor='70');

ALTER TABLE ONLY betimes.workflow_nodes FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workflow_runs (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    job_id uuid,
    state smallint DEFAULT 0 NOT NULL,
    input bytea,
    output bytea,
    error jsonb,
    options jsonb,
    started_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone,
    finished_at timestamp with time zone
);

ALTER TABLE ONLY betimes.workflow_runs FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workflows (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    id uuid NOT NULL,
    definition jsonb NOT NULL,
    digest bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    deleted_at timestamp with time zone,
    CONSTRAINT workflows_version_check CHECK ((version > 0))
);

ALTER TABLE ONLY betimes.workflows FORCE ROW LEVEL SECURITY;

ALTER TABLE ONLY betimes.attempts ATTACH PARTITION betimes.attempts_default DEFAULT;

ALTER TABLE ONLY betimes.decisions ATTACH PARTITION betimes.decisions_default DEFAULT;

ALTER TABLE ONLY betimes.deliveries ATTACH PARTITION betimes.deliveries_default DEFAULT;

ALTER TABLE ONLY betimes.idempotency ATTACH PARTITION betimes.idempotency_default DEFAULT;

ALTER TABLE ONLY betimes.outbox ATTACH PARTITION betimes.outbox_default DEFAULT;

ALTER TABLE ONLY betimes.runs ATTACH PARTITION betimes.runs_default DEFAULT;

ALTER TABLE ONLY betimes.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (shard, run_id, number, fence);

ALTER TABLE ONLY betimes.attempts_default
    ADD CONSTRAINT attempts_default_pkey PRIMARY KEY (shard, run_id, number, fence);

ALTER TABLE ONLY betimes.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (shard, tenant_id);

ALTER TABLE ONLY betimes.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (shard, tenant_id, number);

ALTER TABLE ONLY betimes.blobs
    ADD CONSTRAINT blobs_pkey PRIMARY KEY (shard, tenant_id, id);

ALTER TABLE ONLY betimes.breakers
    ADD CONSTRAINT breakers_pkey PRIMARY KEY (tenant_id, origin);

ALTER TABLE ONLY betimes.calendars
    ADD CONSTRAINT calendars_pkey PRIMARY KEY (tenant_id, name);

ALTER TABLE ONLY betimes.catchups
    ADD CONSTRAINT catchups_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (one);

ALTER TABLE ONLY betimes.data_keys
    ADD CONSTRAINT data_keys_pkey PRIMARY KEY (tenant_id, version);

ALTER TABLE ONLY betimes.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (shard, run_id);

ALTER TABLE ONLY betimes.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (shard, job_id, fire_at);

ALTER TABLE ONLY betimes.decisions_default
    ADD CONSTRAINT decisions_default_pkey PRIMARY KEY (shard, job_id, fire_at);

ALTER TABLE ONLY betimes.dedupe
    ADD CONSTRAINT dedupe_pkey PRIMARY KEY (shard, tenant_id, key);

ALTER TABLE ONLY betimes.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.deliveries_default
    ADD CONSTRAINT deliveries_default_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.device_grants
    ADD CONSTRAINT device_grants_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY betimes.device_grants
    ADD CONSTRAINT device_grants_user_code_key UNIQUE (user_code);

ALTER TABLE ONLY betimes.endpoints
    ADD CONSTRAINT endpoints_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY betimes.gaps
    ADD CONSTRAINT gaps_pkey PRIMARY KEY (shard, from_at, job_id);

ALTER TABLE ONLY betimes.handler_schemas
    ADD CONSTRAINT handler_schemas_pkey PRIMARY KEY (tenant_id, handler, digest);

ALTER TABLE ONLY betimes.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (shard, tenant_id, key, day);

ALTER TABLE ONLY betimes.idempotency_default
    ADD CONSTRAINT idempotency_default_pkey PRIMARY KEY (shard, tenant_id, key, day);

ALTER TABLE ONLY betimes.job_revisions
    ADD CONSTRAINT job_revisions_pkey PRIMARY KEY (shard, job_id, revision);

ALTER TABLE ONLY betimes.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY betimes.mailboxes
    ADD CONSTRAINT mailboxes_pkey PRIMARY KEY (shard, endpoint_id);

ALTER TABLE ONLY betimes.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY betimes.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);

ALTER TABLE ONLY betimes.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (shard, tenant_id, id);

ALTER TABLE ONLY betimes.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.outbox_default
    ADD CONSTRAINT outbox_default_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.parcels
    ADD CONSTRAINT parcels_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (tenant_id, name);

ALTER TABLE ONLY betimes.routings
    ADD CONSTRAINT routings_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY betimes.run_logs
    ADD CONSTRAINT run_logs_pkey PRIMARY KEY (shard, run_id, seq);

ALTER TABLE ONLY betimes.run_notes
    ADD CONSTRAINT run_notes_pkey PRIMARY KEY (shard, run_id);

ALTER TABLE ONLY betimes.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.runs_default
    ADD CONSTRAINT runs_default_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (tenant_id, name, version);

ALTER TABLE ONLY betimes.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY betimes.shards
    ADD CONSTRAINT shards_pkey PRIMARY KEY (shard);

ALTER TABLE ONLY betimes.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.tenants
    ADD CONSTRAINT tenants_slug_key UNIQUE (slug);

ALTER TABLE ONLY betimes.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.workflow_nodes
    ADD CONSTRAINT workflow_nodes_pkey PRIMARY KEY (shard, workflow_run_id, node);

ALTER TABLE ONLY betimes.workflow_runs
    ADD CONSTRAINT workflow_runs_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (shard, tenant_id, name, version);

CREATE INDEX api_keys_tenant_idx ON betimes.api_keys USING btree (tenant_id, created_at);

CREATE INDEX audit_tenant_idx ON betimes.audit USING btree (tenant_id, at, shard, number);

CREATE INDEX blobs_expires_idx ON betimes.blobs USING btree (shard, expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX breakers_broken_idx ON betimes.breakers USING btree (tenant_id, origin) WHERE (state <> 0);

CREATE UNIQUE INDEX catchups_current_idx ON betimes.catchups USING btree (shard, tenant_id) WHERE (state < 2);

CREATE INDEX catchups_decided_idx ON betimes.catchups USING btree (shard, id) WHERE (state = ANY (ARRAY[2, 3]));

CREATE INDEX catchups_tenant_idx ON betimes.catchups USING btree (tenant_id, id);

CREATE INDEX dead_letters_group_idx ON betimes.dead_letters USING btree (tenant_id, fingerprint, dead_at);

CREATE INDEX dead_letters_tenant_idx ON betimes.dead_letters USING btree (tenant_id, state, dead_at, run_id);

CREATE INDEX dedupe_prune_idx ON betimes.dedupe USING btree (shard, prune_at);

CREATE INDEX deliveries_waiting_idx ON ONLY betimes.deliveries USING btree (shard, endpoint_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX deliveries_default_shard_endpoint_id_due_at_id_idx ON betimes.deliveries_default USING btree (shard, endpoint_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX deliveries_endpoint_idx ON ONLY betimes.deliveries USING btree (shard, endpoint_id, id);

CREATE INDEX deliveries_default_shard_endpoint_id_id_idx ON betimes.deliveries_default USING btree (shard, endpoint_id, id);

CREATE INDEX device_grants_expires_idx ON betimes.device_grants USING btree (expires_at);

CREATE INDEX endpoints_successes_idx ON betimes.endpoints USING btree (tenant_id) WHERE (wants_successes AND (disabled_at IS NULL));

CREATE INDEX jobs_calendars_idx ON betimes.jobs USING btree (tenant_id, id) WHERE (options ? 'calendars'::text);

CREATE UNIQUE INDEX jobs_name_idx ON betimes.jobs USING btree (shard, tenant_id, job_group, name) WHERE (name IS NOT NULL);

CREATE INDEX jobs_next_fire_idx ON betimes.jobs USING btree (shard, next_fire_at, id) WHERE (next_fire_at IS NOT NULL);

CREATE INDEX jobs_paused_until_idx ON betimes.jobs USING btree (shard, paused_until) WHERE (paused_until IS NOT NULL);

CREATE INDEX jobs_spent_idx ON betimes.jobs USING btree (shard, id) WHERE ((state = 3) AND (after_completion = 1));

CREATE INDEX jobs_tenant_idx ON betimes.jobs USING btree (tenant_id, id);

CREATE INDEX limits_used_idx ON betimes.limits USING btree (used_at);

CREATE INDEX mailboxes_due_idx ON betimes.mailboxes USING btree (next_due_at) WHERE (next_due_at IS NOT NULL);

CREATE INDEX members_code_idx ON betimes.members USING btree (code) WHERE (code IS NOT NULL);

CREATE UNIQUE INDEX members_email_idx ON betimes.members USING btree (tenant_id, email);

CREATE INDEX operations_due_idx ON betimes.operations USING btree (due_at) WHERE (state < 2);

CREATE INDEX operations_expires_idx ON betimes.operations USING btree (shard, expires_at);

CREATE INDEX operations_open_idx ON betimes.operations USING btree (shard, created_at) WHERE (state < 2);

CREATE INDEX operations_tenant_idx ON betimes.operations USING btree (tenant_id, id);

CREATE INDEX outbox_arrived_idx ON ONLY betimes.outbox USING btree (tenant_id, arrived_at, id);

CREATE INDEX outbox_default_tenant_id_arrived_at_id_idx ON betimes.outbox_default USING btree (tenant_id, arrived_at, id);

CREATE INDEX outbox_tenant_idx ON ONLY betimes.outbox USING btree (tenant_id, id);

CREATE INDEX outbox_default_tenant_id_id_idx ON betimes.outbox_default USING btree (tenant_id, id);

CREATE INDEX parcels_episode_idx ON betimes.parcels USING btree (episode, shard, rank) WHERE ((episode IS NOT NULL) AND (held = 3));

CREATE INDEX parcels_gate_idx ON betimes.parcels USING btree (tenant_id, gate, held, rank) WHERE (gate IS NOT NULL);

CREATE INDEX parcels_gate_slot_idx ON betimes.parcels USING btree (tenant_id, gate) WHERE (slot AND (gate IS NOT NULL));

CREATE INDEX parcels_held_idx ON betimes.parcels USING btree (shard, held, visible_at) WHERE (held > 0);

CREATE INDEX parcels_in_flight_idx ON betimes.parcels USING btree (tenant_id, queue) WHERE (worker_id IS NOT NULL);

CREATE INDEX parcels_leased_idx ON betimes.parcels USING btree (shard, lease_until) WHERE (worker_id IS NOT NULL);

CREATE INDEX parcels_line_idx ON betimes.parcels USING btree (shard, line, held, rank) WHERE (line IS NOT NULL);

CREATE INDEX parcels_line_slot_idx ON betimes.parcels USING btree (shard, line) WHERE (slot AND (line IS NOT NULL));

CREATE INDEX parcels_ready_idx ON betimes.parcels USING btree (shard, queue, tenant_id, fair, rank) INCLUDE (visible_at, deliveries) WHERE ((worker_id IS NULL) AND (held = 0));

CREATE INDEX parcels_worker_idx ON betimes.parcels USING btree (worker_id) WHERE (worker_id IS NOT NULL);

CREATE INDEX run_logs_at_idx ON betimes.run_logs USING btree (shard, at);

CREATE INDEX run_notes_updated_idx ON betimes.run_notes USING btree (shard, updated_at);

CREATE INDEX runs_job_idx ON ONLY betimes.runs USING btree (shard, job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_default_shard_job_id_id_idx ON betimes.runs_default USING btree (shard, job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_start_by_idx ON ONLY betimes.runs USING btree (shard, start_by) WHERE (start_by IS NOT NULL);

CREATE INDEX runs_default_shard_start_by_idx ON betimes.runs_default USING btree (shard, start_by) WHERE (start_by IS NOT NULL);

CREATE INDEX runs_tenant_idx ON ONLY betimes.runs USING btree (tenant_id, id);

CREATE INDEX runs_default_tenant_id_id_idx ON betimes.runs_default USING btree (tenant_id, id);

CREATE INDEX sessions_expires_idx ON betimes.sessions USING btree (expires_at);

CREATE INDEX sessions_member_idx ON betimes.sessions USING btree (tenant_id, member_id) WHERE (member_id IS NOT NULL);

CREATE INDEX tenants_told_all_idx ON betimes.tenants USING btree (id) WHERE ((settings ->> 'run_events'::text) = 'all'::text);

CREATE INDEX workers_tenant_idx ON betimes.workers USING btree (tenant_id, id);

CREATE INDEX workflow_runs_tenant_idx ON betimes.workflow_runs USING btree (tenant_id, id);

ALTER INDEX betimes.attempts_pkey ATTACH PARTITION betimes.attempts_default_pkey;

ALTER INDEX betimes.decisions_pkey ATTACH PARTITION betimes.decisions_default_pkey;

ALTER INDEX betimes.deliveries_pkey ATTACH PARTITION betimes.deliveries_default_pkey;

ALTER INDEX betimes.deliveries_waiting_idx ATTACH PARTITION betimes.deliveries_default_shard_endpoint_id_due_at_id_idx;

ALTER INDEX betimes.deliveries_endpoint_idx ATTACH PARTITION betimes.deliveries_default_shard_endpoint_id_id_idx;

ALTER INDEX betimes.idempotency_pkey ATTACH PARTITION betimes.idempotency_default_pkey;

ALTER INDEX betimes.outbox_pkey ATTACH PARTITION betimes.outbox_default_pkey;

ALTER INDEX betimes.outbox_arrived_idx ATTACH PARTITION betimes.outbox_default_tenant_id_arrived_at_id_idx;

ALTER INDEX betimes.outbox_tenant_idx ATTACH PARTITION betimes.outbox_default_tenant_id_id_idx;

ALTER INDEX betimes.runs_pkey ATTACH PARTITION betimes.runs_default_pkey;

ALTER INDEX betimes.runs_job_idx ATTACH PARTITION betimes.runs_default_shard_job_id_id_idx;

ALTER INDEX betimes.runs_start_by_idx ATTACH PARTITION betimes.runs_default_shard_start_by_idx;

ALTER INDEX betimes.runs_tenant_idx ATTACH PARTITION betimes.runs_default_tenant_id_id_idx;

ALTER TABLE ONLY betimes.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.breakers
    ADD CONSTRAINT breakers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.calendars
    ADD CONSTRAINT calendars_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.data_keys
    ADD CONSTRAINT data_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.device_grants
    ADD CONSTRAINT device_grants_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.endpoints
    ADD CONSTRAINT endpoints_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.handler_schemas
    ADD CONSTRAINT handler_schemas_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.members
    ADD CONSTRAINT members_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.queues
    ADD CONSTRAINT queues_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.routings
    ADD CONSTRAINT routings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.secrets
    ADD CONSTRAINT secrets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.sessions
    ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.sessions
    ADD CONSTRAINT sessions_tenant_id_member_id_fkey FOREIGN KEY (tenant_id, member_id) REFERENCES betimes.members(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.workers
    ADD CONSTRAINT workers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE betimes.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.attempts ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.audit_heads ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.blobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.breakers ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.calendars ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.catchups ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.data_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.dead_letters ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.decisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.dedupe ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.deliveries ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.device_grants ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.endpoints ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.gaps ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.handler_schemas ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.idempotency ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.job_revisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.jobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.limits ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.mailboxes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.members ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.operations ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.outbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY own_tenant ON betimes.api_keys TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.attempts TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.audit TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.audit_heads TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.blobs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.breakers TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.calendars TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.catchups TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.data_keys TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.dead_letters TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.decisions TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.dedupe TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.deliveries TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.device_grants TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.endpoints TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.gaps TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.handler_schemas TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.idempotency TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.job_revisions TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.jobs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.limits TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.mailboxes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.members TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.operations TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.outbox TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.parcels TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.queues TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.routings TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.run_logs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.run_notes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.runs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.secrets TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.sessions TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.tenants TO betimes_api USING ((id = betimes.current_tenant())) WITH CHECK ((id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workers TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_nodes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_runs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflows TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

ALTER TABLE betimes.parcels ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.queues ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.routings ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.run_logs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.run_notes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.secrets ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.tenants ENABLE ROW LEVEL SECURITY;

CREATE POLICY whole_system ON betimes.api_keys TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.attempts TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.audit TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.audit_heads TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.blobs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.breakers TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.calendars TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.catchups TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.data_keys TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.dead_letters TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.decisions TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.dedupe TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.deliveries TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.device_grants TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.endpoints TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.gaps TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.handler_schemas TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.idempotency TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.job_revisions TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.jobs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.limits TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.mailboxes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.members TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.operations TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.outbox TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.parcels TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.queues TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.routings TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.run_logs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.run_notes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.runs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.secrets TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.sessions TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.tenants TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workers TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_nodes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_runs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflows TO betimes_system USING (true) WITH CHECK (true);

ALTER TABLE betimes.workers ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflows ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA betimes TO betimes_api;
GRANT USAGE ON SCHEMA betimes TO betimes_system;

REVOKE ALL ON FUNCTION betimes.drop_partition(parent text, day date) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.drop_partition(parent text, day date) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.ensure_partition(parent text, day date) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.ensure_partition(parent text, day date) TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.api_keys TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.api_keys TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.attempts TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.attempts TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.attempts_default TO betimes_system;

GRANT SELECT,INSERT ON TABLE betimes.audit TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.audit TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.audit_heads TO betimes_system;
GRANT SELECT,INSERT,UPDATE ON TABLE betimes.audit_heads TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.blobs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.blobs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.breakers TO betimes_system;
GRANT SELECT,INSERT,UPDATE ON TABLE betimes.breakers TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.calendars TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.calendars TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.catchups TO betimes_system;
GRANT SELECT,UPDATE ON TABLE betimes.catchups TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.cluster TO betimes_system;
GRANT SELECT ON TABLE betimes.cluster TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.data_keys TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.data_keys TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.dead_letters TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.dead_letters TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.decisions TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.decisions TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.decisions_default TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.dedupe TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.dedupe TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.deliveries TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.deliveries TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.deliveries_default TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.device_grants TO betimes_system;
GRANT SELECT ON TABLE betimes.device_grants TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.endpoints TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.endpoints TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.gaps TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.gaps TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.handler_schemas TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.handler_schemas TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.idempotency TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.idempotency TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.idempotency_default TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.job_revisions TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.job_revisions TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.jobs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.jobs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.limits TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.limits TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.mailboxes TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.mailboxes TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.members TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.members TO betimes_api;

GRANT SELECT ON TABLE betimes.migrations TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.nodes TO betimes_system;
GRANT SELECT ON TABLE betimes.nodes TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.operations TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.operations TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.outbox TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.outbox TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.outbox_default TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.parcels TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.parcels TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.queues TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.queues TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.routings TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.routings TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.run_logs TO betimes_system;
GRANT SELECT,INSERT ON TABLE betimes.run_logs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.run_notes TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.run_notes TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.runs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.runs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.runs_default TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.secrets TO betimes_system;
GRANT SELECT,INSERT,DELETE ON TABLE betimes.secrets TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.sessions TO betimes_system;
GRANT SELECT,DELETE ON TABLE betimes.sessions TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.shards TO betimes_system;
GRANT SELECT ON TABLE betimes.shards TO betimes_api;

GRANT UPDATE(swept_through) ON TABLE betimes.shards TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.tenants TO betimes_system;
GRANT SELECT,UPDATE ON TABLE betimes.tenants TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workers TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workers TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_nodes TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_nodes TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_runs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_runs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflows TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflows TO betimes_api;

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA betimes GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES TO betimes_system;
