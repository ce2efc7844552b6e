-- The schema as the migrations make it. Written by `make schema`; a test keeps it equal.
-- Long because it is the whole of it, for reading and searching.

CREATE SCHEMA betimes;

CREATE FUNCTION betimes.admit_producer(role text, tenant uuid, hints boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO betimes.producers AS known (role, tenant_id, hints) VALUES (admit_producer.role, tenant, admit_producer.hints)
    ON CONFLICT ON CONSTRAINT producers_pkey DO UPDATE SET hints = excluded.hints;
    EXECUTE format('GRANT USAGE ON SCHEMA betimes TO %I', admit_producer.role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION betimes.enqueue_v1(text, jsonb, jsonb) TO %I', admit_producer.role);
    RETURN true;
END
$$;

CREATE FUNCTION betimes.check_elsewhere(asked jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF asked ? 'target' THEN
        PERFORM betimes.refuse(400, 'a request is not enqueued by SQL, because which addresses may be called is checked by the service; '
            'name a handler that makes the request, write to the outbox (app.tx(…, outbox=True) and betimes relay), or call POST /v1/runs '
            'after the commit', '/target');
    ELSIF asked ? 'notify' THEN
        PERFORM betimes.refuse(400, 'whom to tell is not said by SQL, because the service checks addresses; make an endpoint '
            '(POST /v1/endpoints) that filters by tags, or write to the outbox', '/notify');
    END IF;
END
$$;

CREATE FUNCTION betimes.check_line(line text, what text, most integer, pointer text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF coalesce(length(line), 0) NOT BETWEEN 1 AND most THEN
        PERFORM betimes.refuse(400, format('expected %s of 1-%s characters, got %s', what, most, coalesce(length(line), 0)),
                               pointer);
    ELSIF line ~ '[[:cntrl:]]' THEN
        PERFORM betimes.refuse(400, format('expected %s of printable characters', what), pointer);
    END IF;
END
$$;

CREATE FUNCTION betimes.check_members(given jsonb, known jsonb, pointer text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    member record;
BEGIN
    IF jsonb_typeof(given) <> 'object' THEN
        PERFORM betimes.refuse(400, format('expected an object, got %s', left(given::text, 80)), pointer);
    END IF;
    FOR member IN SELECT key, value FROM jsonb_each(given) LOOP
        IF NOT known ? member.key THEN
            PERFORM betimes.refuse(400, format('expected one of %s, got %L',
                (SELECT string_agg(name, ', ' ORDER BY name) FROM jsonb_object_keys(known) AS name), left(member.key, 80)), pointer);
        ELSIF jsonb_typeof(member.value) <> ALL (string_to_array(known ->> member.key, '|')) THEN
            PERFORM betimes.refuse(400, format('expected %s, got %s', replace(known ->> member.key, '|', ' or '),
                                               left(member.value::text, 80)), pointer || '/' || member.key);
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION betimes.check_sees_all() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NOT pg_has_role(current_user, 'betimes_system', 'USAGE') THEN
        RAISE EXCEPTION 'the role % owns the tables and does not inherit betimes_system, so it cannot tell what is still needed', current_user
            USING HINT = format('GRANT betimes_system TO %I, with INHERIT', current_user);
    END IF;
END
$$;

CREATE FUNCTION betimes.check_whole(given jsonb, lowest bigint, highest bigint, pointer text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF given IS NOT NULL AND ((given #>> '{}')::numeric NOT BETWEEN lowest AND highest OR (given #>> '{}')::numeric % 1 <> 0) THEN
        PERFORM betimes.refuse(400, format('expected a whole number within %s-%s, got %s', lowest, highest, given), pointer);
    END IF;
END
$$;

CREATE FUNCTION betimes.check_word(given jsonb, words text[], pointer text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF given IS NOT NULL AND (given #>> '{}') <> ALL (words) THEN
        PERFORM betimes.refuse(400, format('expected %s, got %s', array_to_string(words, ' or '), left(given::text, 80)), pointer);
    END IF;
END
$$;

CREATE FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamp with time zone, most integer) RETURNS SETOF timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
    SELECT claim.rank FROM (
        -- Offered and on their way: a place is kept for five seconds, or a quarter of the time they have waited.
        (SELECT rank, queue, tenant_id FROM (
            SELECT rank, queue, tenant_id, held_at FROM betimes.parcels
             WHERE tenant_id = of_tenant AND gate = of_gate AND gate IS NOT NULL AND held = 0 AND worker_id IS NULL
             ORDER BY rank LIMIT 64) AS offered
          WHERE held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at)
        UNION ALL
        (SELECT rank, queue, tenant_id FROM (
            SELECT rank, queue, tenant_id, held_at FROM betimes.parcels
             WHERE tenant_id = of_tenant AND rate_key = of_rate AND rate_key IS NOT NULL AND held = 0 AND worker_id IS NULL
             ORDER BY rank LIMIT 64) AS offered
          WHERE held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at)
        UNION ALL
        -- Whoever gets the next token of its rate keeps its place at the gate, for as long.
        (SELECT rank, queue, tenant_id FROM betimes.parcels AS waiting
          WHERE tenant_id = of_tenant AND gate = of_gate AND gate IS NOT NULL AND held = 4
            AND held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at
            AND NOT EXISTS (
                SELECT FROM betimes.parcels AS ahead
                 WHERE ahead.tenant_id = waiting.tenant_id AND ahead.rate_key = waiting.rate_key AND ahead.rate_key IS NOT NULL
                   AND ahead.held = 4 AND ahead.rank < waiting.rank)
          ORDER BY rank LIMIT 64)
        UNION ALL
        (SELECT rank, queue, tenant_id FROM betimes.parcels
          WHERE tenant_id = of_tenant AND rate_key = of_rate AND rate_key IS NOT NULL AND held = 4
          ORDER BY rank LIMIT most)
    ) AS claim
     -- Nothing is kept for those to whom nobody comes.
     WHERE NOT EXISTS (
            SELECT FROM betimes.queues
             WHERE queues.tenant_id = claim.tenant_id AND queues.name = claim.queue AND queues.paused_at IS NOT NULL)
       AND EXISTS (
            SELECT FROM betimes.workers
             WHERE (workers.tenant_id IS NULL OR workers.tenant_id = claim.tenant_id) AND NOT workers.draining
               AND workers.heartbeat_at > asked_at - interval '1 min'
               AND (claim.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)))
     ORDER BY claim.rank LIMIT most
$$;

COMMENT ON FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamp with time zone, most integer) IS 'The ranks of those who come before younger ones at a concurrency key or a rate, best first.';

CREATE FUNCTION betimes.count_kept(parent text, day date, most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
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

CREATE FUNCTION betimes.current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT nullif(current_setting('betimes.tenant', true), '')::uuid
$$;

CREATE FUNCTION betimes.dismiss_producer(role text, tenant uuid) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    dismissed boolean;
BEGIN
    DELETE FROM betimes.producers AS known WHERE known.role = dismiss_producer.role AND known.tenant_id = tenant;
    dismissed := FOUND;
    IF dismissed AND NOT EXISTS (SELECT FROM betimes.producers AS known WHERE known.role = dismiss_producer.role)
       AND EXISTS (SELECT FROM pg_roles WHERE rolname = dismiss_producer.role) THEN
        EXECUTE format('REVOKE EXECUTE ON FUNCTION betimes.enqueue_v1(text, jsonb, jsonb) FROM %I', dismiss_producer.role);
        EXECUTE format('REVOKE USAGE ON SCHEMA betimes FROM %I', dismiss_producer.role);
    END IF;
    RETURN dismissed;
END
$$;

CREATE FUNCTION betimes.drop_partition(parent text, day date, most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
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

CREATE FUNCTION betimes.due_of(asked jsonb) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $_$
DECLARE
    due timestamptz := clock_timestamp();
BEGIN
    IF asked ->> 'at' IS NOT NULL AND asked ->> 'delay' IS NOT NULL THEN
        PERFORM betimes.refuse(400, 'expected a time or a delay, got both', '/delay');
    ELSIF asked ->> 'delay' IS NOT NULL THEN
        due := due + betimes.span_ms(asked -> 'delay', '/delay') * interval '1 millisecond';
    ELSIF asked ->> 'at' IS NOT NULL THEN
        IF asked ->> 'at' !~ '^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)$' THEN
            PERFORM betimes.refuse(400, format('expected a time such as 2026-01-01T00:00:00Z, got %L', left(asked ->> 'at', 64)), '/at');
        END IF;
        BEGIN
            due := greatest(due, (asked ->> 'at')::timestamptz);
        EXCEPTION WHEN data_exception THEN
            PERFORM betimes.refuse(400, format('expected a time such as 2026-01-01T00:00:00Z, got %L', asked ->> 'at'), '/at');
        END;
    END IF;
    IF due >= '2200-01-01 00:00+00' THEN
        PERFORM betimes.refuse(400, format('expected a time before 2200, got %s', due), '/at');
    END IF;
    RETURN due;
END
$_$;

CREATE FUNCTION betimes.enqueue_v1(handler text, payload jsonb DEFAULT NULL::jsonb, options jsonb DEFAULT NULL::jsonb, OUT run_id text, OUT deduplicated boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'on'
    AS $$
DECLARE
    asked    jsonb := coalesce(options, '{}');
    key      jsonb;
    key_ms   bigint;
    body     bytea := convert_to(payload::text, 'UTF8');
    stored   jsonb;
    due      timestamptz;
    producer record;
    limits   record;
    cell     record;
    holder   uuid;
    fresh    uuid;
    drains   boolean;
    used     bigint := 0;
    place    smallint;
    fits     boolean := true;
BEGIN
    PERFORM betimes.check_elsewhere(asked);
    PERFORM betimes.check_line(handler, 'a handler', 255, '/handler');
    PERFORM betimes.check_members(asked, '{"queue": "string", "priority": "number", "delay": "string|number|null", "at": "string|null",
        "dedupe_key": "string|null", "dedupe": "object|null", "timeout": "string|number|null", "start_deadline": "string|number|null",
        "retry": "object|null", "tags": "object|null", "concurrency": "object|null", "fairness_key": "string|null",
        "rate_limit_key": "string|null", "payload_ref": "string|null", "trace": "string|null", "tenant": "string|null"}', '');
    PERFORM betimes.check_whole(asked -> 'priority', 0, 9, '/priority');
    PERFORM betimes.check_line(coalesce(asked ->> 'queue', 'default'), 'a queue', 128, '/queue');
    IF asked ->> 'queue' LIKE '%:%' THEN
        PERFORM betimes.refuse(400, format('expected a queue without a colon, got %L', asked ->> 'queue'), '/queue');
    ELSIF octet_length(body) > 262144 THEN
        PERFORM betimes.refuse(413, format('expected a payload of at most 262144 bytes, got %s', octet_length(body)), '/payload');
    END IF;
    stored := betimes.stored_options(asked);
    due := betimes.due_of(asked);
    key := coalesce(nullif(asked -> 'dedupe', 'null'), jsonb_build_object('key', nullif(asked -> 'dedupe_key', 'null')));
    IF key ->> 'key' IS NOT NULL OR asked ->> 'dedupe' IS NOT NULL THEN
        PERFORM betimes.check_members(key, '{"key": "string", "window": "string|number|null", "form": "string"}', '/dedupe');
        PERFORM betimes.check_line(key ->> 'key', 'a dedupe key', 255, '/dedupe/key');
        PERFORM betimes.check_word(key -> 'form', '{unique,throttle,debounce}', '/dedupe/form');
        IF asked ->> 'dedupe' IS NOT NULL AND asked ->> 'dedupe_key' IS NOT NULL THEN
            PERFORM betimes.refuse(400, 'expected dedupe or dedupe_key, got both', '/dedupe_key');
        ELSIF key ->> 'window' IS NOT NULL THEN
            key_ms := betimes.span_ms(key -> 'window', '/dedupe/window', interval '366 days');
        END IF;
        IF key_ms = 0 OR (key_ms IS NULL AND key ->> 'form' <> 'unique') THEN
            PERFORM betimes.refuse(400, 'expected a window above 0', '/dedupe/window');
        END IF;
        IF key ->> 'form' = 'debounce' AND asked ->> 'at' IS NULL AND asked ->> 'delay' IS NULL THEN
            due := due + key_ms * interval '1 millisecond';
        END IF;
    END IF;

    -- Looked up in a subtransaction that is undone: it gives back every lock at once, and the caller's transaction,
    -- however long it lives, keeps nobody from dropping a partition or changing a table.
    BEGIN
        SELECT count(*) AS several, min(tenants.id::text)::uuid AS tenant, bool_and(producers.hints) AS hints,
               max(tenants.state) AS state INTO producer
          FROM betimes.producers JOIN betimes.tenants ON tenants.id = producers.tenant_id
         WHERE producers.role = session_user::text AND (asked ->> 'tenant' IS NULL OR tenants.slug = asked ->> 'tenant');
        SELECT shards INTO cell FROM betimes.cluster;
        IF producer.several = 1 THEN
            SELECT (quotas ->> 'payload_bytes')::bigint AS largest,
                   least((quotas ->> 'backlog')::bigint, (quotas ->> 'active_runs')::bigint) AS backlog INTO limits
              FROM betimes.tenants WHERE id = producer.tenant;
            SELECT coalesce(bool_or(draining AND (drain_until IS NULL OR drain_until > clock_timestamp())), false) INTO drains FROM betimes.queues
             WHERE tenant_id = producer.tenant AND name = coalesce(asked ->> 'queue', 'default');
            IF key ->> 'key' IS NOT NULL AND key ->> 'form' IS DISTINCT FROM 'debounce' THEN
                holder := betimes.holder_of(producer.tenant, key ->> 'key', coalesce(key ->> 'form', 'unique'), cell.shards);
            END IF;
            IF holder IS NULL AND (payload IS NOT NULL OR asked ->> 'payload_ref' IS NULL) THEN
                fits := betimes.may_be_taken(producer.tenant, handler, payload);
            END IF;
            IF limits.backlog IS NOT NULL AND holder IS NULL THEN
                SELECT used + coalesce(sum(cardinality(run_ids)), 0) INTO used FROM betimes.parcels WHERE tenant_id = producer.tenant;
                SELECT used + count(*) INTO used FROM betimes.intake WHERE tenant_id = producer.tenant AND refused IS NULL;
            END IF;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'BT000';
    EXCEPTION WHEN SQLSTATE 'BT000' THEN
        NULL;
    END;

    IF producer.several = 0 THEN
        PERFORM betimes.refuse(403, format('the role %I may not enqueue here; an administrator runs: betimes producer add', session_user));
    ELSIF producer.several > 1 THEN
        PERFORM betimes.refuse(400, format('the role %I enqueues for several tenants; say which', session_user), '/tenant');
    ELSIF producer.state > 0 THEN
        PERFORM betimes.refuse(403, 'the tenant accepts nothing new', '/tenant');
    ELSIF octet_length(body) > limits.largest THEN
        PERFORM betimes.refuse(429, format('the quota payload_bytes allows %s, got %s', limits.largest, octet_length(body)), '/payload');
    END IF;
    IF holder IS NOT NULL THEN
        run_id := betimes.id_text('run', holder);
        deduplicated := true;
        RETURN;
    END IF;
    IF NOT fits THEN
        PERFORM betimes.refuse(422, format('the payload does not fit the handler %L, as its workers have declared it', handler), '/payload');
    ELSIF drains THEN
        PERFORM betimes.refuse(409, format('the queue %L drains and accepts nothing new', coalesce(asked ->> 'queue', 'default')), '/queue');
    ELSIF used >= limits.backlog THEN
        PERFORM betimes.refuse(429, format('the quota of waiting runs allows %s, and %s are in use', limits.backlog, used));
    END IF;

    -- One shard for a transaction, so that few parcels carry its runs.
    place := (hashint8(pg_current_xact_id()::text::bigint) & 2147483647) % cell.shards;
    fresh := (lpad(to_hex(floor(extract(epoch FROM due) * 1000)::bigint), 12, '0') || '8' || lpad(to_hex(place::integer), 3, '0')
              || substr(replace(gen_random_uuid()::text, '-', ''), 17, 16))::uuid;
    INSERT INTO betimes.intake (shard, id, tenant_id, producer, asked_at, due_at, priority, queue, handler, payload, options,
                                dedupe_key, dedupe_form, dedupe_ms)
    VALUES (place, fresh, producer.tenant, session_user, clock_timestamp(), due, coalesce((asked ->> 'priority')::smallint, 5),
            coalesce(asked ->> 'queue', 'default'), handler, body, stored, key ->> 'key',
            CASE WHEN key ->> 'key' IS NOT NULL THEN coalesce(key ->> 'form', 'unique') END, key_ms);
    IF producer.hints THEN
        PERFORM pg_notify('betimes_intake', place::text);
    END IF;
    run_id := betimes.id_text('run', fresh);
    deduplicated := false;
END
$$;

CREATE FUNCTION betimes.ensure_login(login text, password text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
BEGIN
    -- Several processes may start at once.
    PERFORM FROM betimes.cluster FOR UPDATE;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) THEN
        EXECUTE format('CREATE ROLE %I', login);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT PASSWORD %L',
                   login, password);
    EXECUTE format('GRANT betimes_api, betimes_system TO %I', login);
END
$$;

COMMENT ON FUNCTION betimes.ensure_login(login text, password text) IS 'Make a login that can do nothing but act as the roles of the service. For the owner of the schema.';

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

CREATE FUNCTION betimes.holder_of(tenant uuid, wanted text, form text, shards smallint) RETURNS uuid
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    taken    record;
    standing uuid;
BEGIN
    SELECT intake.id INTO standing FROM betimes.intake
     WHERE tenant_id = tenant AND dedupe_key = wanted AND refused IS NULL ORDER BY intake.id LIMIT 1;
    IF FOUND THEN
        RETURN standing;
    END IF;
    SELECT holder, expires_at INTO taken FROM betimes.dedupe
     WHERE shard = ANY (ARRAY(SELECT generate_series(0, shards - 1)::smallint)) AND tenant_id = tenant AND key = 'run:' || wanted;
    SELECT runs.id INTO standing FROM betimes.runs
     WHERE runs.shard = ('x' || substr(replace(taken.holder::text, '-', ''), 14, 3))::bit(12)::integer AND runs.id = taken.holder
       AND (taken.expires_at > clock_timestamp() OR (form = 'unique' AND runs.state < 4));
    RETURN standing;
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

CREATE FUNCTION betimes.is_awaited(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
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

CREATE FUNCTION betimes.is_referenced(tenant uuid, blob uuid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH reference AS MATERIALIZED (SELECT betimes.id_text('blob', blob) AS text)
    SELECT EXISTS (
               SELECT FROM betimes.runs
                WHERE runs.tenant_id = tenant AND runs.options ? 'payload_ref'
                  AND runs.options ->> 'payload_ref' = (SELECT text FROM reference)
                  AND (runs.state < 4
                       OR EXISTS (SELECT FROM betimes.dead_letters
                                   WHERE dead_letters.shard = runs.shard AND dead_letters.run_id = runs.id
                                     AND dead_letters.state = 0)))
        OR EXISTS (
               SELECT FROM betimes.jobs
                WHERE jobs.tenant_id = tenant AND jobs.options ? 'payload_ref'
                  AND jobs.options ->> 'payload_ref' = (SELECT text FROM reference)
                  AND (jobs.state < 3
                       -- The last run of a job that fires no more takes its payload from there.
                       OR EXISTS (SELECT FROM betimes.runs AS last
                                   WHERE last.shard = jobs.shard AND last.job_id = jobs.id
                                     AND (last.state < 4
                                          OR EXISTS (SELECT FROM betimes.dead_letters
                                                      WHERE dead_letters.shard = last.shard
                                                        AND dead_letters.run_id = last.id
                                                        AND dead_letters.state = 0)))))
$$;

COMMENT ON FUNCTION betimes.is_referenced(tenant uuid, blob uuid) IS 'Whether a job that fires, a run that has not ended or an open dead letter needs a blob.';

CREATE FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT EXISTS (
        SELECT FROM (SELECT runs.state, runs.trigger FROM betimes.runs
                      WHERE runs.shard = of_shard AND runs.job_id = of_job
                      ORDER BY runs.id DESC LIMIT 256) AS newest
         WHERE newest.state < 4 AND newest.trigger = 0)
$$;

COMMENT ON FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) IS 'Whether planned fires of a job are not over: then it shows as active, though it may be stored as complete.';

CREATE FUNCTION betimes.is_watched(child text) RETURNS boolean
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(format('betimes.%I', child)) AND tgname = 'note_kept')
$$;

COMMENT ON FUNCTION betimes.is_watched(child text) IS 'Whether a partition notes what is written to it.';

CREATE FUNCTION betimes.kept_when(parent text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
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

COMMENT ON FUNCTION betimes.kept_when(parent text) IS 'Which rows of an aged partition are moved on, as a condition; null where a partition is dropped or kept as a whole.';

CREATE FUNCTION betimes.may_be_taken(tenant uuid, wanted text, payload jsonb) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT coalesce(bool_or(betimes.may_fit(coalesce(payload, 'null'), told.schema::jsonb, told.schema::jsonb)), true)
      FROM betimes.handler_schemas AS told
     WHERE told.tenant_id = tenant AND told.handler = wanted
       AND (NOT EXISTS (
            SELECT FROM betimes.handler_schemas AS newer
             WHERE newer.tenant_id = told.tenant_id AND newer.handler = told.handler AND newer.declared_at > told.declared_at)
         OR EXISTS (
            SELECT FROM betimes.workers
             WHERE workers.tenant_id = told.tenant_id AND workers.heartbeat_at > statement_timestamp() - interval '5 minutes'
               AND workers.details -> 'schemas' ->> told.handler = told.digest));
$$;

CREATE FUNCTION betimes.may_fit(given jsonb, wanted jsonb, whole jsonb, depth integer DEFAULT 0) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    kind   text := CASE jsonb_typeof(given) WHEN 'number' THEN CASE WHEN (given #>> '{}')::numeric % 1 = 0 THEN 'integer' ELSE 'number' END
                        ELSE jsonb_typeof(given) END;
    kinds  text[];
    member record;
BEGIN
    IF jsonb_typeof(wanted) <> 'object' OR depth > 32 THEN
        RETURN wanted IS DISTINCT FROM 'false';
    ELSIF wanted ->> '$ref' IS NOT NULL AND wanted ->> '$ref' NOT LIKE '#/$defs/%' THEN
        RETURN true;
    ELSIF wanted ? '$ref' AND NOT betimes.may_fit(given, coalesce(whole #> ARRAY['$defs', substr(wanted ->> '$ref', 9)], 'true'), whole, depth + 1) THEN
        RETURN false;
    ELSIF jsonb_typeof(wanted -> 'anyOf') = 'array' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(wanted -> 'anyOf') AS choice WHERE betimes.may_fit(given, choice, whole, depth + 1)) THEN
        RETURN false;
    ELSIF wanted ? 'const' AND given <> wanted -> 'const' OR jsonb_typeof(wanted -> 'enum') = 'array' AND NOT wanted -> 'enum' @> jsonb_build_array(given) THEN
        RETURN false;
    END IF;
    kinds := CASE jsonb_typeof(wanted -> 'type') WHEN 'string' THEN ARRAY[wanted ->> 'type']
                  WHEN 'array' THEN ARRAY(SELECT jsonb_array_elements_text(wanted -> 'type')) END;
    IF NOT (kind = ANY (kinds) OR (kind = 'integer' AND 'number' = ANY (kinds))) THEN
        RETURN false;
    END IF;
    IF kind = 'array' AND wanted ? 'items' THEN
        RETURN NOT EXISTS (SELECT FROM jsonb_array_elements(given) AS item WHERE NOT betimes.may_fit(item, wanted -> 'items', whole, depth + 1));
    ELSIF kind = 'object' THEN
        IF jsonb_typeof(wanted -> 'required') = 'array' AND NOT given ?& ARRAY(SELECT jsonb_array_elements_text(wanted -> 'required')) THEN
            RETURN false;
        END IF;
        FOR member IN SELECT key, value FROM jsonb_each(given) LOOP
            IF wanted -> 'properties' ? member.key THEN
                IF NOT betimes.may_fit(member.value, wanted -> 'properties' -> member.key, whole, depth + 1) THEN
                    RETURN false;
                END IF;
            ELSIF NOT wanted ? 'patternProperties'
                  AND NOT betimes.may_fit(member.value, coalesce(wanted -> 'additionalProperties', 'true'), whole, depth + 1) THEN
                RETURN false;
            END IF;
        END LOOP;
    END IF;
    RETURN true;
END
$_$;

CREATE FUNCTION betimes.new_id(shard smallint) RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12, '0') || '8' || lpad(to_hex(shard::integer), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17, 16))::uuid
$$;

CREATE FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT runs.fire_at FROM betimes.runs
     WHERE runs.shard = of_shard AND runs.job_id = of_job AND runs.id >= soon AND runs.state < 4 AND runs.trigger = 0
     ORDER BY runs.id LIMIT 1
$$;

COMMENT ON FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) IS 'The next fire of a job that is planned already; its row names the first one that is not.';

CREATE FUNCTION betimes.note_kept() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION betimes.refuse(status integer, sentence text, pointer text DEFAULT ''::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'BT' || status, MESSAGE = sentence, DETAIL = pointer;
END
$$;

CREATE FUNCTION betimes.scan_partition(parent text, day date, blocks integer) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
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

CREATE FUNCTION betimes.span_ms(source jsonb, pointer text, most interval DEFAULT '36600 days'::interval) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "IntervalStyle" TO 'postgres'
    AS $_$
DECLARE
    words text := source #>> '{}';
    ms    numeric;
BEGIN
    IF jsonb_typeof(source) = 'number' THEN
        ms := words::numeric * 1000;
    ELSIF jsonb_typeof(source) = 'string' AND length(words) <= 64
          AND words ~ '^P(\d+(\.\d+)?W)?(\d+(\.\d+)?D)?(T(?=\d)(\d+(\.\d+)?H)?(\d+(\.\d+)?M)?(\d+(\.\d+)?S)?)?$' AND words <> 'P' THEN
        ms := extract(epoch FROM words::interval) * 1000;
    ELSIF jsonb_typeof(source) = 'string' AND length(words) <= 64 AND words ~*
          '^(\d+(\.\d+)? *(ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)[ ,]*)+$' THEN
        -- Parts that touch one another (1h30m) are parted, or PostgreSQL would not read them.
        ms := extract(epoch FROM regexp_replace(replace(words, ',', ' '), '([a-zA-Z])(\d)', '\1 \2', 'g')::interval) * 1000;
    ELSE
        PERFORM betimes.refuse(400, format('expected a duration such as PT15M or 15m, got %s', left(source::text, 80)), pointer);
    END IF;
    IF ms NOT BETWEEN 0 AND extract(epoch FROM most) * 1000 THEN
        PERFORM betimes.refuse(400, format('expected a duration within 0 and %s days, got %s',
                                           extract(epoch FROM most)::bigint / 86400, left(words, 80)), pointer);
    END IF;
    RETURN floor(ms);
END
$_$;

CREATE FUNCTION betimes.stored_options(asked jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    stored jsonb := '{}';
    name   text;
BEGIN
    FOREACH name IN ARRAY ARRAY['timeout', 'start_deadline'] LOOP
        IF asked ->> name IS NOT NULL THEN
            stored := stored || jsonb_build_object(name || '_ms', betimes.span_ms(asked -> name, '/' || name));
        END IF;
    END LOOP;
    IF asked ->> 'retry' IS NOT NULL THEN
        stored := stored || jsonb_build_object('retry', betimes.stored_retry(asked -> 'retry'));
    END IF;
    FOREACH name IN ARRAY ARRAY['fairness_key', 'rate_limit_key'] LOOP
        IF asked ->> name IS NOT NULL THEN
            PERFORM betimes.check_line(asked ->> name, 'a ' || replace(name, '_', ' '), 255, '/' || name);
            stored := stored || jsonb_build_object(name, asked -> name);
        END IF;
    END LOOP;
    IF asked ->> 'concurrency' IS NOT NULL THEN
        PERFORM betimes.check_members(asked -> 'concurrency', '{"key": "string", "limit": "number|null", "on_limit": "string"}',
                                      '/concurrency');
        PERFORM betimes.check_line(asked #>> '{concurrency,key}', 'a key', 255, '/concurrency/key');
        PERFORM betimes.check_whole(nullif(asked #> '{concurrency,limit}', 'null'), 1, 1000000, '/concurrency/limit');
        PERFORM betimes.check_word(asked #> '{concurrency,on_limit}', '{wait,skip}', '/concurrency/on_limit');
        stored := stored || jsonb_build_object('concurrency', jsonb_strip_nulls(asked -> 'concurrency'));
    END IF;
    IF asked -> 'tags' NOT IN ('{}', 'null') THEN
        IF (SELECT count(*) FROM jsonb_object_keys(asked -> 'tags')) > 32
           OR EXISTS (SELECT FROM jsonb_each(asked -> 'tags') AS tag WHERE jsonb_typeof(tag.value) <> 'string') THEN
            PERFORM betimes.refuse(400, 'expected at most 32 tags, all of them texts', '/tags');
        END IF;
        stored := stored || jsonb_build_object('tags', asked -> 'tags');
    END IF;
    IF asked ->> 'payload_ref' IS NOT NULL THEN
        PERFORM betimes.check_line(asked ->> 'payload_ref', 'a reference', 1024, '/payload_ref');
        stored := stored || jsonb_build_object('payload_ref', asked -> 'payload_ref');
    END IF;
    IF asked ->> 'trace' IS NOT NULL THEN
        PERFORM betimes.check_line(asked ->> 'trace', 'a trace', 128, '/trace');
        stored := stored || jsonb_build_object('trace', asked -> 'trace');
    END IF;
    IF length(stored::text) > 16384 THEN
        PERFORM betimes.refuse(413, format('expected options of at most 16384 bytes, got %s', length(stored::text)));
    END IF;
    RETURN nullif(stored, '{}');
END
$$;

CREATE FUNCTION betimes.stored_retry(asked jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    stored jsonb := asked - '{initial,max,max_elapsed,delays}'::text[];
    name   text;
BEGIN
    PERFORM betimes.check_members(asked, '{"max_attempts": "number", "backoff": "string", "initial": "string|number",
        "factor": "number", "max": "string|number", "delays": "array", "jitter": "string", "max_elapsed": "string|number|null",
        "retry_on": "array", "give_up_on": "array"}', '/retry');
    PERFORM betimes.check_whole(asked -> 'max_attempts', 1, 1000, '/retry/max_attempts');
    PERFORM betimes.check_word(asked -> 'backoff', '{exponential,linear,fixed,list}', '/retry/backoff');
    PERFORM betimes.check_word(asked -> 'jitter', '{full,equal,none}', '/retry/jitter');
    IF (asked ->> 'factor')::numeric NOT BETWEEN 1 AND 100 THEN
        PERFORM betimes.refuse(400, format('expected a factor within 1-100, got %s', asked ->> 'factor'), '/retry/factor');
    END IF;
    FOREACH name IN ARRAY ARRAY['initial', 'max', 'max_elapsed'] LOOP
        IF asked ->> name IS NOT NULL THEN
            stored := stored || jsonb_build_object(name || '_ms', betimes.span_ms(asked -> name, '/retry/' || name,
                CASE name WHEN 'max_elapsed' THEN interval '36600 days' ELSE interval '30 days' END));
        END IF;
    END LOOP;
    FOREACH name IN ARRAY ARRAY['delays', 'retry_on', 'give_up_on'] LOOP
        IF jsonb_array_length(asked -> name) > 100 THEN
            PERFORM betimes.refuse(400, 'expected at most 100 members', '/retry/' || name);
        END IF;
    END LOOP;
    IF asked ->> 'backoff' = 'list' AND coalesce(jsonb_array_length(asked -> 'delays'), 0) = 0 THEN
        PERFORM betimes.refuse(400, 'expected delays for backoff list, got none', '/retry/delays');
    END IF;
    IF asked ? 'delays' THEN
        stored := stored || jsonb_build_object('delays_ms', (
            SELECT coalesce(jsonb_agg(betimes.span_ms(delay, '/retry/delays/' || place - 1) ORDER BY place), '[]')
              FROM jsonb_array_elements(asked -> 'delays') WITH ORDINALITY AS given (delay, place)));
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(coalesce(asked -> 'retry_on', '[]') || coalesce(asked -> 'give_up_on', '[]')) AS named
                WHERE jsonb_typeof(named) <> 'string') THEN
        PERFORM betimes.refuse(400, 'expected names of errors as texts', '/retry');
    END IF;
    RETURN stored;
END
$$;

CREATE FUNCTION betimes.survey(least_bytes bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    grown    regclass;
    surveyed integer := 0;
BEGIN
    FOR grown IN
        SELECT leaf.oid::regclass FROM pg_class AS leaf
         WHERE leaf.relnamespace = 'betimes'::regnamespace AND leaf.relkind = 'r'
           AND (leaf.relname = 'parcels' OR leaf.relname ~ '^runs_([0-9]{8}|default)$')
           AND pg_relation_size(leaf.oid) >= least_bytes
           AND (leaf.reltuples < 0 OR pg_relation_size(leaf.oid) / 8 > leaf.relpages::bigint * current_setting('block_size')::bigint)
    LOOP
        EXECUTE format('ANALYZE (SKIP_LOCKED) %s', grown);
        surveyed := surveyed + 1;
    END LOOP;
    RETURN surveyed;
END
$_$;

COMMENT ON FUNCTION betimes.survey(least_bytes bigint) IS 'Count anew what tables hold that are at least so large and eight times as large as when they were last counted.';

CREATE TABLE betimes.aged_days (
    parent text NOT NULL,
    day date NOT NULL,
    next_block bigint DEFAULT 0 NOT NULL,
    scanned boolean DEFAULT false NOT NULL
);

COMMENT ON TABLE betimes.aged_days IS 'Partitions that are older than they are kept, and how far each was scanned for rows to keep.';

CREATE TABLE betimes.alert_rules (
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    condition text NOT NULL,
    threshold double precision NOT NULL,
    window_ms bigint NOT NULL,
    for_ms bigint NOT NULL,
    severity text NOT NULL,
    jobs uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    queues text[] DEFAULT '{}'::text[] NOT NULL,
    targets text[] DEFAULT '{}'::text[] NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    next_check_at timestamp with time zone NOT NULL,
    checked_at timestamp with time zone,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    updated_at timestamp with time zone NOT NULL,
    tags jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT alert_rules_for_ms_check CHECK ((for_ms >= 0)),
    CONSTRAINT alert_rules_window_ms_check CHECK ((window_ms > 0))
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.alert_rules FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.alerts (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    rule text NOT NULL,
    condition text NOT NULL,
    subject text NOT NULL,
    severity text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    is_told boolean DEFAULT false NOT NULL,
    value double precision NOT NULL,
    threshold double precision NOT NULL,
    since timestamp with time zone NOT NULL,
    fired_at timestamp with time zone,
    resolved_at timestamp with time zone,
    CONSTRAINT alerts_over_means_resolved CHECK (((resolved_at IS NOT NULL) = (state = 2))),
    CONSTRAINT alerts_state_check CHECK (((state >= 0) AND (state <= 2)))
);

ALTER TABLE ONLY betimes.alerts FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.alerts IS 'Episodes: from when the condition of a rule held for a subject until it did no longer.';

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
    retention text DEFAULT 'standard'::text NOT NULL,
    CONSTRAINT blobs_size_check CHECK ((size >= 0))
);

ALTER TABLE ONLY betimes.blobs FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.blobs.key_version IS 'Which data key of the tenant seals it; 0 is what was written before there were keys.';

COMMENT ON COLUMN betimes.blobs.location IS 'Where it is kept when that is not here: a scheme and a name.';

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
    reset_at timestamp with time zone,
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
    inline boolean DEFAULT false NOT NULL,
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
    key_until timestamp with time zone,
    CONSTRAINT device_grants_state_check CHECK (((state >= 0) AND (state <= 3)))
);

ALTER TABLE ONLY betimes.device_grants FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.device_grants.key_until IS 'When the key of the device ends, once somebody has said yes.';

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
    key_version integer DEFAULT 0 NOT NULL,
    wants_failures boolean DEFAULT false NOT NULL,
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

CREATE TABLE betimes.intake (
    shard smallint NOT NULL,
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    producer text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    priority smallint NOT NULL,
    queue text NOT NULL,
    handler text NOT NULL,
    payload bytea,
    options jsonb,
    dedupe_key text,
    dedupe_form text,
    dedupe_ms bigint,
    refused text
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE ONLY betimes.intake FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.intake IS 'Runs that were asked for in transactions of others, until they are made.';

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
    untold boolean DEFAULT false NOT NULL,
    CONSTRAINT jobs_after_completion_check CHECK (((after_completion >= 0) AND (after_completion <= 1))),
    CONSTRAINT jobs_only_active_jobs_fire CHECK (((state = 0) OR (next_fire_at IS NULL))),
    CONSTRAINT jobs_priority_check CHECK (((priority >= 0) AND (priority <= 9))),
    CONSTRAINT jobs_revision_check CHECK ((revision > 0)),
    CONSTRAINT jobs_state_check CHECK (((state >= 0) AND (state <= 4)))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE ONLY betimes.jobs FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.jobs.untold IS 'It was complete when it was made, and is to be told when its last run is over.';

CREATE TABLE betimes.kept_rows (
    parent text NOT NULL,
    day date NOT NULL,
    shard smallint NOT NULL,
    run_id uuid NOT NULL
);

COMMENT ON TABLE betimes.kept_rows IS 'Runs of aged partitions that had not ended or were dead letters when they were scanned or written.';

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

COMMENT ON COLUMN betimes.limits.rate_limit IS 'For kind rate: what was said for the key; null means what the queue says (key_rate_limit), else no limit.';

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
    drain_at timestamp with time zone,
    capacity integer,
    CONSTRAINT nodes_capacity_check CHECK ((capacity > 0))
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
    rate_key text,
    leased_at timestamp with time zone,
    handler text,
    origin text,
    CONSTRAINT parcels_gated_alone CHECK ((((gate IS NULL) AND (line IS NULL) AND (rate_key IS NULL)) OR (cardinality(run_ids) = 1))),
    CONSTRAINT parcels_held_by_nobody CHECK (((held = 0) OR (worker_id IS NULL))),
    CONSTRAINT parcels_held_check CHECK (((held >= 0) AND (held <= 4))),
    CONSTRAINT parcels_held_since CHECK (((held = 0) OR (held_at IS NOT NULL))),
    CONSTRAINT parcels_leased_by_somebody CHECK (((worker_id IS NULL) = (lease_until IS NULL))),
    CONSTRAINT parcels_run_ids_check CHECK ((cardinality(run_ids) > 0)),
    CONSTRAINT parcels_slot_is_leased CHECK (((NOT slot) OR (worker_id IS NOT NULL)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='5000');

ALTER TABLE ONLY betimes.parcels FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.parcels.held IS 'Why it is not offered to workers: 0 it is, 1 its gate or line is full, 2 overlap is decided when it is due, 3 it waits for approval, 4 its rate is used up for now.';

COMMENT ON COLUMN betimes.parcels.slot IS 'Leased and admitted through its gate and line: this is what in flight means for them.';

COMMENT ON COLUMN betimes.parcels.held_at IS 'Since when it is held; where it is not, when it was last offered again.';

COMMENT ON COLUMN betimes.parcels.line IS 'The job whose runs go one after the other (overlap: buffer_one, buffer_all, cancel_running, replace).';

COMMENT ON COLUMN betimes.parcels.gate IS 'The concurrency key of its one run.';

COMMENT ON COLUMN betimes.parcels.episode IS 'The catch-up it belongs to while it waits for approval.';

COMMENT ON COLUMN betimes.parcels.rate_key IS 'The key of the rate of its one run.';

COMMENT ON COLUMN betimes.parcels.leased_at IS 'When it was leased last; says something only while a worker has it.';

COMMENT ON COLUMN betimes.parcels.handler IS 'What a worker must have to lease it: a handler, or `:` and a kind of target; NULL: any worker of the queue may look.';

COMMENT ON COLUMN betimes.parcels.origin IS 'The origin whose open breaker its runs wait for; they are brought forward when it closes.';

CREATE TABLE betimes.producers (
    role text NOT NULL,
    tenant_id uuid NOT NULL,
    hints boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY betimes.producers FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.producers IS 'Database roles that may enqueue by the function, and for which tenants.';

COMMENT ON COLUMN betimes.producers.hints IS 'Whether its commits notify. NOTIFY makes commits wait for each other, which very busy producers would rather not.';

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
    key_rate_limit integer,
    key_rate_per_ms bigint,
    retain_ms bigint,
    dead_letter boolean DEFAULT true NOT NULL,
    drain_until timestamp with time zone,
    drain_reason text,
    CONSTRAINT queues_fairness_check CHECK ((fairness = ANY (ARRAY['tenant'::text, 'key'::text, 'none'::text]))),
    CONSTRAINT queues_key_rate_limit_check CHECK ((key_rate_limit > 0)),
    CONSTRAINT queues_key_rate_per_ms_check CHECK ((key_rate_per_ms > 0)),
    CONSTRAINT queues_max_concurrency_check CHECK ((max_concurrency >= 0)),
    CONSTRAINT queues_rate_limit_check CHECK ((rate_limit > 0)),
    CONSTRAINT queues_rate_per_ms_check CHECK ((rate_per_ms > 0)),
    CONSTRAINT queues_retain_ms_check CHECK ((retain_ms > 0)),
    CONSTRAINT queues_weight_check CHECK ((weight > (0)::double precision))
);

ALTER TABLE ONLY betimes.queues FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.queues.key_rate_limit IS 'The rate of each rate limit key for which nothing else was said.';

COMMENT ON COLUMN betimes.queues.retain_ms IS 'How long after their end its runs are kept, if that is shorter than runs are kept at all.';

COMMENT ON COLUMN betimes.queues.dead_letter IS 'Whether runs that are out of attempts are laid aside; without it they only end as dead.';

COMMENT ON COLUMN betimes.queues.drain_until IS 'When a queue that drains accepts new work again by itself.';

CREATE TABLE betimes.quota_news (
    tenant_id uuid NOT NULL,
    quota text NOT NULL,
    type text NOT NULL,
    told_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY betimes.quota_news FORCE ROW LEVEL SECURITY;

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
    updated_at timestamp with time zone NOT NULL,
    metrics jsonb
)
WITH (fillfactor='50');

ALTER TABLE ONLY betimes.run_notes FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.run_notes IS 'What a worker has said about a run it holds: progress, and a checkpoint for the next attempt.';

COMMENT ON COLUMN betimes.run_notes.metrics IS 'Numbers by name that the worker reported with the end of the run.';

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
    rate_key text,
    moved boolean DEFAULT false NOT NULL,
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

COMMENT ON COLUMN betimes.runs.rate_key IS 'The key of a rate it shares with others of its tenant.';

COMMENT ON COLUMN betimes.runs.moved IS 'Somebody gave it another time than its id says: it answers for no other run of its job.';

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
    rate_key text,
    moved boolean DEFAULT false CONSTRAINT runs_moved_not_null NOT NULL,
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
    origins text[] NOT NULL,
    CONSTRAINT secrets_version_check CHECK ((version >= 1))
);

ALTER TABLE ONLY betimes.secrets FORCE ROW LEVEL SECURITY;

COMMENT ON COLUMN betimes.secrets.origins IS 'Where it may be sent: scheme, host and port, *. for names below, * for anywhere. The same in every version.';

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
    published_through timestamp with time zone,
    swept_through timestamp with time zone,
    tzdata text,
    expired_through timestamp with time zone,
    CONSTRAINT shards_owned_until CHECK (((owner IS NULL) = (lease_until IS NULL)))
)
WITH (fillfactor='20', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200');

COMMENT ON COLUMN betimes.shards.expired_through IS 'Every run that had to start by then has been looked at.';

CREATE TABLE betimes.silences (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    rule text,
    subject text,
    reason text NOT NULL,
    until timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text
);

ALTER TABLE ONLY betimes.silences FORCE ROW LEVEL SECURITY;

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

CREATE TABLE betimes.workflow_items (
    shard smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    node text NOT NULL,
    place integer NOT NULL,
    tenant_id uuid NOT NULL,
    run_id uuid NOT NULL,
    state smallint DEFAULT 2 NOT NULL,
    output bytea,
    error jsonb,
    CONSTRAINT workflow_items_place_check CHECK ((place >= 0))
)
WITH (fillfactor='70');

ALTER TABLE ONLY betimes.workflow_items FORCE ROW LEVEL SECURITY;

COMMENT ON TABLE betimes.workflow_items IS 'One run of a mapped node each.';

CREATE TABLE betimes.workflow_nodes (
    shard smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    node text NOT NULL,
    tenant_id uuid NOT NULL,
    run_id uuid,
    state smallint DEFAULT 0 NOT NULL,
    output bytea,
    detail jsonb,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    ready_at timestamp with time zone,
    is_open boolean DEFAULT false NOT NULL,
    is_interrupted boolean DEFAULT false NOT NULL,
    signal bytea,
    items_total integer,
    items_started integer DEFAULT 0 NOT NULL,
    items_succeeded integer DEFAULT 0 NOT NULL,
    items_failed integer DEFAULT 0 NOT NULL,
    items_cancelled integer DEFAULT 0 NOT NULL,
    CONSTRAINT workflow_nodes_items_add_up CHECK (((((items_succeeded + items_failed) + items_cancelled) <= items_started) AND (items_started <= COALESCE(items_total, 0))))
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
    finished_at timestamp with time zone,
    definition bytea NOT NULL,
    digest bytea NOT NULL,
    stop smallint,
    run_id uuid,
    created_by text,
    retries integer DEFAULT 0 NOT NULL,
    CONSTRAINT workflow_runs_finished_means_final CHECK (((finished_at IS NOT NULL) = (state > 0))),
    CONSTRAINT workflow_runs_stop_check CHECK (((stop >= 1) AND (stop <= 4)))
);

ALTER TABLE ONLY betimes.workflow_runs FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workflow_turns (
    shard smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    cause uuid NOT NULL,
    tenant_id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0');

ALTER TABLE ONLY betimes.workflow_turns FORCE ROW LEVEL SECURITY;

CREATE TABLE betimes.workflows (
    shard smallint NOT NULL,
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    id uuid NOT NULL,
    definition bytea NOT NULL,
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

ALTER TABLE ONLY betimes.aged_days
    ADD CONSTRAINT aged_days_pkey PRIMARY KEY (parent, day);

ALTER TABLE ONLY betimes.alert_rules
    ADD CONSTRAINT alert_rules_pkey PRIMARY KEY (tenant_id, name);

ALTER TABLE ONLY betimes.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (shard, id);

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

ALTER TABLE ONLY betimes.intake
    ADD CONSTRAINT intake_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.job_revisions
    ADD CONSTRAINT job_revisions_pkey PRIMARY KEY (shard, job_id, revision);

ALTER TABLE ONLY betimes.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.kept_rows
    ADD CONSTRAINT kept_rows_pkey PRIMARY KEY (parent, day, shard, run_id);

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

ALTER TABLE ONLY betimes.producers
    ADD CONSTRAINT producers_pkey PRIMARY KEY (role, tenant_id);

ALTER TABLE ONLY betimes.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (tenant_id, name);

ALTER TABLE ONLY betimes.quota_news
    ADD CONSTRAINT quota_news_pkey PRIMARY KEY (tenant_id, quota, type);

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

ALTER TABLE ONLY betimes.silences
    ADD CONSTRAINT silences_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY betimes.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.tenants
    ADD CONSTRAINT tenants_slug_key UNIQUE (slug);

ALTER TABLE ONLY betimes.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY betimes.workflow_items
    ADD CONSTRAINT workflow_items_pkey PRIMARY KEY (shard, workflow_run_id, node, place);

ALTER TABLE ONLY betimes.workflow_nodes
    ADD CONSTRAINT workflow_nodes_pkey PRIMARY KEY (shard, workflow_run_id, node);

ALTER TABLE ONLY betimes.workflow_runs
    ADD CONSTRAINT workflow_runs_pkey PRIMARY KEY (shard, id);

ALTER TABLE ONLY betimes.workflow_turns
    ADD CONSTRAINT workflow_turns_pkey PRIMARY KEY (shard, workflow_run_id, cause);

ALTER TABLE ONLY betimes.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (shard, tenant_id, name, version);

CREATE INDEX alert_rules_check_idx ON betimes.alert_rules USING btree (next_check_at) WHERE (NOT disabled);

CREATE UNIQUE INDEX alerts_open_idx ON betimes.alerts USING btree (shard, tenant_id, rule, subject) WHERE (resolved_at IS NULL);

CREATE INDEX alerts_resolved_idx ON betimes.alerts USING btree (shard, resolved_at) WHERE (resolved_at IS NOT NULL);

CREATE INDEX alerts_rule_idx ON betimes.alerts USING btree (tenant_id, rule) WHERE (resolved_at IS NULL);

CREATE INDEX alerts_tenant_idx ON betimes.alerts USING btree (tenant_id, id);

CREATE INDEX api_keys_tenant_idx ON betimes.api_keys USING btree (tenant_id, created_at);

CREATE INDEX audit_tenant_idx ON betimes.audit USING btree (tenant_id, at, shard, number);

CREATE INDEX blobs_expires_idx ON betimes.blobs USING btree (shard, expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX blobs_located_idx ON betimes.blobs USING btree (shard, expires_at) WHERE (location IS NOT NULL);

CREATE INDEX breakers_broken_idx ON betimes.breakers USING btree (tenant_id, origin) WHERE (state <> 0);

CREATE UNIQUE INDEX catchups_current_idx ON betimes.catchups USING btree (shard, tenant_id) WHERE (state < 2);

CREATE INDEX catchups_decided_idx ON betimes.catchups USING btree (shard, id) WHERE (state = ANY (ARRAY[2, 3]));

CREATE INDEX catchups_tenant_idx ON betimes.catchups USING btree (tenant_id, id);

CREATE INDEX dead_letters_group_idx ON betimes.dead_letters USING btree (tenant_id, fingerprint, dead_at);

CREATE INDEX dead_letters_tenant_idx ON betimes.dead_letters USING btree (tenant_id, state, dead_at, run_id);

CREATE INDEX decisions_tenant_idx ON ONLY betimes.decisions USING btree (tenant_id, decided_at);

CREATE INDEX decisions_default_tenant_id_decided_at_idx ON betimes.decisions_default USING btree (tenant_id, decided_at);

CREATE INDEX dedupe_prune_idx ON betimes.dedupe USING btree (shard, prune_at);

CREATE INDEX deliveries_waiting_idx ON ONLY betimes.deliveries USING btree (shard, endpoint_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX deliveries_default_shard_endpoint_id_due_at_id_idx ON betimes.deliveries_default USING btree (shard, endpoint_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX deliveries_endpoint_idx ON ONLY betimes.deliveries USING btree (shard, endpoint_id, id);

CREATE INDEX deliveries_default_shard_endpoint_id_id_idx ON betimes.deliveries_default USING btree (shard, endpoint_id, id);

CREATE INDEX device_grants_expires_idx ON betimes.device_grants USING btree (expires_at);

CREATE INDEX endpoints_failures_idx ON betimes.endpoints USING btree (tenant_id) WHERE (wants_failures AND (disabled_at IS NULL));

CREATE INDEX endpoints_successes_idx ON betimes.endpoints USING btree (tenant_id) WHERE (wants_successes AND (disabled_at IS NULL));

CREATE INDEX gaps_job_idx ON betimes.gaps USING btree (shard, job_id);

CREATE INDEX intake_open_idx ON betimes.intake USING btree (shard, id) WHERE (refused IS NULL);

CREATE INDEX intake_tenant_idx ON betimes.intake USING btree (tenant_id, dedupe_key);

CREATE INDEX jobs_calendars_idx ON betimes.jobs USING btree (tenant_id, id) WHERE (options ? 'calendars'::text);

CREATE UNIQUE INDEX jobs_name_idx ON betimes.jobs USING btree (shard, tenant_id, job_group, name) WHERE (name IS NOT NULL);

CREATE INDEX jobs_next_fire_idx ON betimes.jobs USING btree (shard, next_fire_at, id) WHERE (next_fire_at IS NOT NULL);

CREATE INDEX jobs_paused_until_idx ON betimes.jobs USING btree (shard, paused_until) WHERE (paused_until IS NOT NULL);

CREATE INDEX jobs_payload_ref_idx ON betimes.jobs USING btree (tenant_id, ((options ->> 'payload_ref'::text))) WHERE (options ? 'payload_ref'::text);

CREATE INDEX jobs_retention_idx ON betimes.jobs USING btree (shard, id) WHERE (options ? 'retain_ms'::text);

CREATE INDEX jobs_spent_idx ON betimes.jobs USING btree (shard, id) WHERE ((state = 3) AND (after_completion = 1));

CREATE INDEX jobs_tenant_idx ON betimes.jobs USING btree (tenant_id, id);

CREATE INDEX jobs_untold_idx ON betimes.jobs USING btree (shard, id) WHERE untold;

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

CREATE INDEX parcels_origin_idx ON betimes.parcels USING btree (tenant_id, origin) WHERE (origin IS NOT NULL);

CREATE INDEX parcels_rate_idx ON betimes.parcels USING btree (tenant_id, rate_key, held, rank) WHERE (rate_key IS NOT NULL);

CREATE INDEX parcels_ready_idx ON betimes.parcels USING btree (shard, queue, tenant_id, fair, rank) INCLUDE (visible_at, deliveries) WHERE ((worker_id IS NULL) AND (held = 0));

CREATE INDEX parcels_retry_idx ON betimes.parcels USING btree (tenant_id, visible_at) WHERE ((lane = 1) AND (worker_id IS NULL));

CREATE INDEX parcels_worker_idx ON betimes.parcels USING btree (worker_id) WHERE (worker_id IS NOT NULL);

CREATE INDEX run_logs_at_idx ON betimes.run_logs USING btree (shard, at);

CREATE INDEX run_notes_updated_idx ON betimes.run_notes USING btree (shard, updated_at);

CREATE INDEX runs_job_idx ON ONLY betimes.runs USING btree (shard, job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_default_shard_job_id_id_idx ON betimes.runs_default USING btree (shard, job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_start_by_idx ON ONLY betimes.runs USING btree (shard, start_by) WHERE (start_by IS NOT NULL);

CREATE INDEX runs_default_shard_start_by_idx ON betimes.runs_default USING btree (shard, start_by) WHERE (start_by IS NOT NULL);

CREATE INDEX runs_payload_ref_idx ON ONLY betimes.runs USING btree (tenant_id, ((options ->> 'payload_ref'::text))) WHERE (options ? 'payload_ref'::text);

CREATE INDEX runs_default_tenant_id_expr_idx ON betimes.runs_default USING btree (tenant_id, ((options ->> 'payload_ref'::text))) WHERE (options ? 'payload_ref'::text);

CREATE INDEX runs_tenant_idx ON ONLY betimes.runs USING btree (tenant_id, id);

CREATE INDEX runs_default_tenant_id_id_idx ON betimes.runs_default USING btree (tenant_id, id);

CREATE INDEX sessions_expires_idx ON betimes.sessions USING btree (expires_at);

CREATE INDEX sessions_member_idx ON betimes.sessions USING btree (tenant_id, member_id) WHERE (member_id IS NOT NULL);

CREATE INDEX tenants_told_all_idx ON betimes.tenants USING btree (id) WHERE ((settings ->> 'run_events'::text) = 'all'::text);

CREATE INDEX workers_tenant_idx ON betimes.workers USING btree (tenant_id, id);

CREATE INDEX workflow_items_running_idx ON betimes.workflow_items USING btree (shard, run_id) WHERE (state = 2);

CREATE INDEX workflow_nodes_running_idx ON betimes.workflow_nodes USING btree (shard, run_id) WHERE ((state = 2) AND (run_id IS NOT NULL));

CREATE INDEX workflow_runs_old_idx ON betimes.workflow_runs USING btree (shard, finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX workflow_runs_tenant_idx ON betimes.workflow_runs USING btree (tenant_id, id);

CREATE INDEX workflow_turns_due_idx ON betimes.workflow_turns USING btree (due_at, shard, workflow_run_id);

CREATE INDEX workflows_tenant_idx ON betimes.workflows USING btree (tenant_id, name, version) WHERE (deleted_at IS NULL);

ALTER INDEX betimes.attempts_pkey ATTACH PARTITION betimes.attempts_default_pkey;

ALTER INDEX betimes.decisions_pkey ATTACH PARTITION betimes.decisions_default_pkey;

ALTER INDEX betimes.decisions_tenant_idx ATTACH PARTITION betimes.decisions_default_tenant_id_decided_at_idx;

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

ALTER INDEX betimes.runs_payload_ref_idx ATTACH PARTITION betimes.runs_default_tenant_id_expr_idx;

ALTER INDEX betimes.runs_tenant_idx ATTACH PARTITION betimes.runs_default_tenant_id_id_idx;

ALTER TABLE ONLY betimes.alert_rules
    ADD CONSTRAINT alert_rules_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

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

ALTER TABLE ONLY betimes.producers
    ADD CONSTRAINT producers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.queues
    ADD CONSTRAINT queues_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.quota_news
    ADD CONSTRAINT quota_news_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.routings
    ADD CONSTRAINT routings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.secrets
    ADD CONSTRAINT secrets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.sessions
    ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.sessions
    ADD CONSTRAINT sessions_tenant_id_member_id_fkey FOREIGN KEY (tenant_id, member_id) REFERENCES betimes.members(tenant_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.silences
    ADD CONSTRAINT silences_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE ONLY betimes.workers
    ADD CONSTRAINT workers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES betimes.tenants(id) ON DELETE CASCADE;

ALTER TABLE betimes.alert_rules ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.alerts ENABLE ROW LEVEL SECURITY;

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

ALTER TABLE betimes.intake ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.job_revisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.jobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.limits ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.mailboxes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.members ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.operations ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.outbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY own_tenant ON betimes.alert_rules TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.alerts TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

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

CREATE POLICY own_tenant ON betimes.intake TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.job_revisions TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.jobs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.limits TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.mailboxes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.members TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.operations TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.outbox TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.parcels TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.producers TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.queues TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.quota_news TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.routings TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.run_logs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.run_notes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.runs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.secrets TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.sessions TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.silences TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.tenants TO betimes_api USING ((id = betimes.current_tenant())) WITH CHECK ((id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workers TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_items TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_nodes TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_runs TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflow_turns TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

CREATE POLICY own_tenant ON betimes.workflows TO betimes_api USING ((tenant_id = betimes.current_tenant())) WITH CHECK ((tenant_id = betimes.current_tenant()));

ALTER TABLE betimes.parcels ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.producers ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.queues ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.quota_news ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.routings ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.run_logs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.run_notes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.secrets ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.silences ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.tenants ENABLE ROW LEVEL SECURITY;

CREATE POLICY whole_system ON betimes.alert_rules TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.alerts TO betimes_system USING (true) WITH CHECK (true);

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

CREATE POLICY whole_system ON betimes.intake TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.job_revisions TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.jobs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.limits TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.mailboxes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.members TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.operations TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.outbox TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.parcels TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.producers TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.queues TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.quota_news TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.routings TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.run_logs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.run_notes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.runs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.secrets TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.sessions TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.silences TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.tenants TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workers TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_items TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_nodes TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_runs TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflow_turns TO betimes_system USING (true) WITH CHECK (true);

CREATE POLICY whole_system ON betimes.workflows TO betimes_system USING (true) WITH CHECK (true);

ALTER TABLE betimes.workers ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_items ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_nodes ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflow_turns ENABLE ROW LEVEL SECURITY;

ALTER TABLE betimes.workflows ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA betimes TO betimes_api;
GRANT USAGE ON SCHEMA betimes TO betimes_system WITH GRANT OPTION;

REVOKE ALL ON FUNCTION betimes.admit_producer(role text, tenant uuid, hints boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.admit_producer(role text, tenant uuid, hints boolean) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.check_elsewhere(asked jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.check_elsewhere(asked jsonb) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.check_line(line text, what text, most integer, pointer text) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.check_line(line text, what text, most integer, pointer text) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.check_members(given jsonb, known jsonb, pointer text) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.check_members(given jsonb, known jsonb, pointer text) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.check_sees_all() FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.check_whole(given jsonb, lowest bigint, highest bigint, pointer text) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.check_whole(given jsonb, lowest bigint, highest bigint, pointer text) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.check_word(given jsonb, words text[], pointer text) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.check_word(given jsonb, words text[], pointer text) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamp with time zone, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamp with time zone, most integer) TO betimes_api;
GRANT ALL ON FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamp with time zone, most integer) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.count_kept(parent text, day date, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.dismiss_producer(role text, tenant uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.dismiss_producer(role text, tenant uuid) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.drop_partition(parent text, day date, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.drop_partition(parent text, day date, most integer) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.due_of(asked jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.due_of(asked jsonb) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.enqueue_v1(handler text, payload jsonb, options jsonb, OUT run_id text, OUT deduplicated boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.ensure_login(login text, password text) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.ensure_partition(parent text, day date) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.ensure_partition(parent text, day date) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.holder_of(tenant uuid, wanted text, form text, shards smallint) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.holder_of(tenant uuid, wanted text, form text, shards smallint) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.is_awaited(parent text, day date) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.is_referenced(tenant uuid, blob uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.is_referenced(tenant uuid, blob uuid) TO betimes_api;
GRANT ALL ON FUNCTION betimes.is_referenced(tenant uuid, blob uuid) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) TO betimes_system;
GRANT ALL ON FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) TO betimes_api;

REVOKE ALL ON FUNCTION betimes.is_watched(child text) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.kept_when(parent text) FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.may_be_taken(tenant uuid, wanted text, payload jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.may_be_taken(tenant uuid, wanted text, payload jsonb) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.may_fit(given jsonb, wanted jsonb, whole jsonb, depth integer) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.may_fit(given jsonb, wanted jsonb, whole jsonb, depth integer) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) TO betimes_system;
GRANT ALL ON FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) TO betimes_api;

REVOKE ALL ON FUNCTION betimes.note_kept() FROM PUBLIC;

REVOKE ALL ON FUNCTION betimes.refuse(status integer, sentence text, pointer text) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.refuse(status integer, sentence text, pointer text) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.scan_partition(parent text, day date, blocks integer) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.scan_partition(parent text, day date, blocks integer) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.span_ms(source jsonb, pointer text, most interval) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.span_ms(source jsonb, pointer text, most interval) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.stored_options(asked jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.stored_options(asked jsonb) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.stored_retry(asked jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.stored_retry(asked jsonb) TO betimes_system;

REVOKE ALL ON FUNCTION betimes.survey(least_bytes bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION betimes.survey(least_bytes bigint) TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.aged_days TO betimes_system;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.alert_rules TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.alert_rules TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.alerts TO betimes_system;
GRANT SELECT,UPDATE ON TABLE betimes.alerts TO betimes_api;

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

GRANT UPDATE(inline) ON TABLE betimes.data_keys TO betimes_api;

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

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.intake TO betimes_system;
GRANT SELECT ON TABLE betimes.intake TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.job_revisions TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.job_revisions TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.jobs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.jobs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.kept_rows TO betimes_system;

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

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.producers TO betimes_system;
GRANT SELECT ON TABLE betimes.producers TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.queues TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.queues TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.quota_news TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.quota_news TO betimes_api;

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

GRANT UPDATE(origins) ON TABLE betimes.secrets TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.sessions TO betimes_system;
GRANT SELECT,DELETE ON TABLE betimes.sessions TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.shards TO betimes_system;
GRANT SELECT ON TABLE betimes.shards TO betimes_api;

GRANT UPDATE(swept_through) ON TABLE betimes.shards TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.silences TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.silences TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.tenants TO betimes_system;
GRANT SELECT,UPDATE ON TABLE betimes.tenants TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workers TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workers TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_items TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_items TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_nodes TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_nodes TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_runs TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_runs TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_turns TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflow_turns TO betimes_api;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflows TO betimes_system;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE betimes.workflows TO betimes_api;

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA betimes GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES TO betimes_system;
