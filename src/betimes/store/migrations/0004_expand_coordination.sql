-- Who owns which slice of the work, and who is alive.

CREATE TABLE betimes.shards (
    shard             smallint PRIMARY KEY,
    owner             uuid,
    -- Rises with every change of owner and never falls: the fencing token of the shard.
    epoch             bigint NOT NULL DEFAULT 0,
    lease_until       timestamptz,
    planned_through   timestamptz,
    published_through timestamptz,
    swept_through     timestamptz,
    tzdata            text,
    CONSTRAINT shards_owned_until CHECK ((owner IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

CREATE TABLE betimes.nodes (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    version      text NOT NULL,
    tzdata       text NOT NULL,
    roles        text[] NOT NULL,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    skew_ms      double precision,
    draining     boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE TABLE betimes.workers (
    id           uuid PRIMARY KEY,
    -- Null for the service's own workers, which serve every tenant.
    tenant_id    uuid REFERENCES betimes.tenants ON DELETE CASCADE,
    node_id      uuid,
    name         text NOT NULL,
    version      text NOT NULL DEFAULT '',
    queues       text[] NOT NULL,
    handlers     text[] NOT NULL DEFAULT '{}',
    slots        integer NOT NULL CHECK (slots > 0),
    busy         integer NOT NULL DEFAULT 0,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    skew_ms      double precision,
    draining     boolean NOT NULL DEFAULT false,
    labels       jsonb NOT NULL DEFAULT '{}',
    details      jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

-- Make or drop the partition of one day. Rows that were planned for that day before it had a
-- partition wait in the default partition and are moved in the same transaction.
-- Run with the owner's rights, because the service itself owns nothing.
CREATE FUNCTION betimes.ensure_partition(parent text, day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
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

CREATE FUNCTION betimes.partition_bound(parent text, day date) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN parent IN ('runs', 'attempts', 'outbox') THEN
            (lpad(to_hex((extract(epoch FROM day::timestamp) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid::text
        WHEN parent = 'decisions' THEN day::text || ' 00:00:00+00'
        ELSE day::text
    END
$$;

CREATE FUNCTION betimes.partition_storage(parent text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE parent
        -- Room for the one update in a run's life on the same page. Insert-driven vacuums are put off:
        -- today's partition is vacuumed for its updates, and yesterday's once.
        WHEN 'runs' THEN 'fillfactor = 40, autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0'
        ELSE 'fillfactor = 90'
    END
$$;

CREATE FUNCTION betimes.drop_partition(parent text, day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
