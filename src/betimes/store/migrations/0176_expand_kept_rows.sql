-- Retention never drops what has not ended. What is kept of an aged day moves into the default partition, under the same
-- ids, in the transaction that drops the day.
--
-- A day may hold ten million rows, and no index knows which of them have not ended: an index on the state would cost
-- every run its HOT update. So an aged day is scanned once, in slices and without a lock. Before the scan begins, the day
-- gets a trigger that notes whatever is written to it from then on. A row that is kept was therefore met by the scan or
-- by the trigger, and the transaction that drops the day looks at the noted rows only.

CREATE TABLE betimes.aged_days (
    parent text NOT NULL,
    day date NOT NULL,
    next_block bigint NOT NULL DEFAULT 0,
    scanned boolean NOT NULL DEFAULT false,
    PRIMARY KEY (parent, day)
);
COMMENT ON TABLE betimes.aged_days IS 'Partitions that are older than they are kept, and how far each was scanned for rows to keep.';

CREATE TABLE betimes.kept_rows (
    parent text NOT NULL,
    day date NOT NULL,
    shard smallint NOT NULL,
    run_id uuid NOT NULL,
    PRIMARY KEY (parent, day, shard, run_id)
);
COMMENT ON TABLE betimes.kept_rows IS 'Runs of aged partitions that had not ended or were dead letters when they were scanned or written.';

CREATE FUNCTION betimes.kept_when(parent text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE parent
        WHEN 'runs' THEN
            '(aged.state < 4 OR aged.state = 5 AND EXISTS (SELECT FROM betimes.dead_letters AS letter'
            ' WHERE letter.shard = aged.shard AND letter.run_id = aged.id))'
        -- What is known of a run is kept as long as the run.
        WHEN 'attempts' THEN
            'EXISTS (SELECT FROM betimes.runs AS run WHERE run.shard = aged.shard AND run.id = aged.run_id'
            ' AND (run.state < 4 OR run.state = 5 AND EXISTS (SELECT FROM betimes.dead_letters AS letter'
            ' WHERE letter.shard = run.shard AND letter.run_id = run.id)))'
    END
$$;
COMMENT ON FUNCTION betimes.kept_when(text) IS 'Which rows of an aged partition are moved on, as a condition; null where a partition is dropped or kept as a whole.';

CREATE FUNCTION betimes.note_kept() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    noted uuid;
BEGIN
    IF TG_ARGV[0] = 'runs' THEN
        noted := NEW.id;
    ELSE
        noted := NEW.run_id;
    END IF;
    INSERT INTO betimes.kept_rows (parent, day, shard, run_id)
    VALUES (TG_ARGV[0], TG_ARGV[1]::date, NEW.shard, noted)
    ON CONFLICT ON CONSTRAINT kept_rows_pkey DO NOTHING;
    RETURN NULL;
END
$$;

-- Those who drop days look into tables of tenants as the owner of the tables, whom policies bind as well: what the owner
-- does not see would be dropped as if nobody needed it.
CREATE FUNCTION betimes.check_sees_all() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(current_user, 'betimes_system', 'USAGE') THEN
        RAISE EXCEPTION 'the role % owns the tables and does not inherit betimes_system, so it cannot tell what is still needed', current_user
            USING HINT = format('GRANT betimes_system TO %I, with INHERIT', current_user);
    END IF;
END
$$;

CREATE FUNCTION betimes.is_watched(child text) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(format('betimes.%I', child)) AND tgname = 'note_kept')
$$;
COMMENT ON FUNCTION betimes.is_watched(text) IS 'Whether a partition notes what is written to it.';

-- Scans the next blocks of an aged day; true when the whole day has been scanned.
CREATE FUNCTION betimes.scan_partition(parent text, day date, blocks integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET "DateStyle" TO 'ISO, YMD' AS $$
DECLARE
    child text := parent || '_' || to_char(day, 'YYYYMMDD');
    key   text := CASE parent WHEN 'runs' THEN 'id' ELSE 'run_id' END;
    aged  record;
    total bigint;
BEGIN
    PERFORM betimes.check_sees_all();
    IF betimes.kept_when(parent) IS NULL OR to_regclass(format('betimes.%I', child)) IS NULL THEN
        RETURN true;
    END IF;
    IF NOT betimes.is_watched(child) THEN
        -- Never scanned, or made anew since: what is known of it is of no use. Others who come now wait here.
        INSERT INTO betimes.aged_days (parent, day) VALUES (scan_partition.parent, scan_partition.day)
        ON CONFLICT ON CONSTRAINT aged_days_pkey DO UPDATE SET next_block = 0, scanned = false;
        IF NOT betimes.is_watched(child) THEN
            -- Waits for those who write to this day, so that the first slice sees all they have written.
            EXECUTE format('CREATE TRIGGER note_kept AFTER INSERT OR UPDATE ON betimes.%I FOR EACH ROW %s '
                           'EXECUTE FUNCTION betimes.note_kept(%L, %L)', child,
                           CASE parent WHEN 'runs' THEN 'WHEN (NEW.state < 4 OR NEW.state = 5)' ELSE '' END, parent, day);
        END IF;
        -- The first slice is another transaction's: nobody who writes to this day waits for a scan.
        RETURN false;
    END IF;
    SELECT * INTO aged FROM betimes.aged_days AS known
     WHERE known.parent = scan_partition.parent AND known.day = scan_partition.day FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR aged.scanned THEN
        RETURN FOUND;
    END IF;
    total := pg_relation_size(format('betimes.%I', child)::regclass) / current_setting('block_size')::bigint;
    EXECUTE format('INSERT INTO betimes.kept_rows (parent, day, shard, run_id) '
                   'SELECT DISTINCT %L, %L::date, aged.shard, aged.%I FROM betimes.%I AS aged '
                   'WHERE aged.ctid >= %L AND aged.ctid < %L AND %s ON CONFLICT DO NOTHING',
                   parent, day, key, child, format('(%s,0)', aged.next_block), format('(%s,0)', aged.next_block + blocks),
                   betimes.kept_when(parent));
    UPDATE betimes.aged_days AS known SET next_block = aged.next_block + blocks, scanned = aged.next_block + blocks >= total
     WHERE known.parent = scan_partition.parent AND known.day = scan_partition.day;
    RETURN aged.next_block + blocks >= total;
END
$$;

CREATE FUNCTION betimes.count_kept(parent text, day date, most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET "DateStyle" TO 'ISO, YMD' AS $$
DECLARE
    child text := parent || '_' || to_char(day, 'YYYYMMDD');
    kept  integer;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM betimes.kept_rows AS noted JOIN betimes.%I AS aged '
                   'ON aged.shard = noted.shard AND aged.%I = noted.run_id '
                   'WHERE noted.parent = %L AND noted.day = %L AND %s LIMIT %s) AS kept',
                   child, CASE parent WHEN 'runs' THEN 'id' ELSE 'run_id' END, parent, day, betimes.kept_when(parent), most + 1)
       INTO kept;
    RETURN kept;
END
$$;

-- Whether somebody is still to be told what a day holds. Only those who can be told count: a disabled endpoint can ask
-- for what it missed as long as events are kept.
CREATE FUNCTION betimes.is_awaited(parent text, day date) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET "DateStyle" TO 'ISO, YMD' AS $$
DECLARE
    child   text := parent || '_' || to_char(day, 'YYYYMMDD');
    awaited boolean := false;
BEGIN
    IF parent = 'outbox' THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM betimes.routings CROSS JOIN LATERAL ('
                       'SELECT FROM betimes.%I AS event WHERE event.tenant_id = routings.tenant_id '
                       'AND event.arrived_at > routings.routed_through LIMIT 1) AS unrouted)', child) INTO awaited;
    END IF;
    IF parent IN ('outbox', 'deliveries') AND NOT awaited THEN
        SELECT EXISTS (
            SELECT FROM betimes.deliveries AS delivery
              JOIN betimes.endpoints AS endpoint ON endpoint.tenant_id = delivery.tenant_id AND endpoint.id = delivery.endpoint_id
             WHERE delivery.due_at IS NOT NULL AND endpoint.disabled_at IS NULL
               AND delivery.id >= betimes.partition_bound('deliveries', is_awaited.day)::uuid
               AND delivery.id < betimes.partition_bound('deliveries', is_awaited.day + 1)::uuid) INTO awaited;
    END IF;
    RETURN awaited;
END
$$;

DROP FUNCTION betimes.drop_partition(text, date);

-- Drops an aged day and moves on what is kept of it; returns how many rows moved, or null when the day stays: it is not
-- scanned, it has more to keep than may move under the lock, or somebody is still to be told of it.
CREATE FUNCTION betimes.drop_partition(parent text, day date, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET "DateStyle" TO 'ISO, YMD' AS $$
DECLARE
    child    text := parent || '_' || to_char(day, 'YYYYMMDD');
    fallback text := parent || '_default';
    moves    boolean := betimes.kept_when(parent) IS NOT NULL;
    moved    integer := 0;
BEGIN
    PERFORM betimes.check_sees_all();
    -- Asked before the lock, which stops everybody, and again under it, where the answer counts.
    FOR attempt IN 1..2 LOOP
        IF to_regclass(format('betimes.%I', child)) IS NULL OR betimes.is_awaited(parent, day) THEN
            RETURN NULL;
        ELSIF moves THEN
            IF NOT betimes.is_watched(child)
               OR NOT EXISTS (SELECT FROM betimes.aged_days AS known
                               WHERE known.parent = drop_partition.parent AND known.day = drop_partition.day AND known.scanned)
               OR betimes.count_kept(parent, day, most) > most THEN
                RETURN NULL;
            END IF;
        END IF;
        IF attempt = 1 THEN
            -- The parent first, as in every statement, so that nobody waits for us while we wait for them.
            EXECUTE format('LOCK TABLE ONLY betimes.%I IN ACCESS EXCLUSIVE MODE', parent);
            EXECUTE format('LOCK TABLE betimes.%I, betimes.%I IN ACCESS EXCLUSIVE MODE', fallback, child);
        END IF;
    END LOOP;
    EXECUTE format('ALTER TABLE betimes.%I DETACH PARTITION betimes.%I', parent, child);
    IF moves THEN
        EXECUTE format('INSERT INTO betimes.%I SELECT aged.* FROM betimes.kept_rows AS noted JOIN betimes.%I AS aged '
                       'ON aged.shard = noted.shard AND aged.%I = noted.run_id '
                       'WHERE noted.parent = %L AND noted.day = %L AND %s',
                       fallback, child, CASE parent WHEN 'runs' THEN 'id' ELSE 'run_id' END, parent, day, betimes.kept_when(parent));
        GET DIAGNOSTICS moved = ROW_COUNT;
        DELETE FROM betimes.kept_rows AS noted WHERE noted.parent = drop_partition.parent AND noted.day = drop_partition.day;
        DELETE FROM betimes.aged_days AS known WHERE known.parent = drop_partition.parent AND known.day = drop_partition.day;
    END IF;
    EXECUTE format('DROP TABLE betimes.%I', child);
    RETURN moved;
END
$$;

-- The parent first here, too: dropping a day takes the parent and then the default partition.
CREATE OR REPLACE FUNCTION betimes.ensure_partition(parent text, day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO 'pg_catalog', 'pg_temp' SET "DateStyle" TO 'ISO, YMD' AS $$
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
    EXECUTE format('LOCK TABLE ONLY betimes.%I IN SHARE UPDATE EXCLUSIVE MODE', parent);
    -- Taken strongest, so that nobody can put a row of this day into the default meanwhile.
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

REVOKE EXECUTE ON FUNCTION betimes.drop_partition, betimes.scan_partition, betimes.count_kept, betimes.is_awaited,
    betimes.kept_when, betimes.note_kept, betimes.check_sees_all,
    betimes.is_watched FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.drop_partition, betimes.scan_partition TO betimes_system;
