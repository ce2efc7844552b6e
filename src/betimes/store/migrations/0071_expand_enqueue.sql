-- The function that asks for runs inside anybody's transaction, and who may call it. Its checks are those of 0070.

-- Who has a dedupe key now: a run that waits to be made, or one that is active or within its window.
-- Called where its locks are given back at once; see below.
CREATE FUNCTION betimes.holder_of(tenant uuid, wanted text, form text, shards smallint) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
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

-- Ask for a run inside the caller's own transaction: it is made when that commits, and never otherwise.
-- `options` holds what the body of POST /v1/runs holds beside handler and payload; `tenant` names one of several.
CREATE FUNCTION betimes.enqueue_v1(
    handler text, payload jsonb DEFAULT NULL, options jsonb DEFAULT NULL, OUT run_id text, OUT deduplicated boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET row_security = on AS $$
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
BEGIN
    PERFORM betimes.check_line(handler, 'a handler', 255, '/handler');
    PERFORM betimes.check_members(asked, '{"queue": "string", "priority": "number", "delay": "string|number|null", "at": "string|null",
        "dedupe_key": "string|null", "dedupe": "object|null", "timeout": "string|number|null", "start_deadline": "string|number|null",
        "retry": "object|null", "tags": "object|null", "concurrency": "object|null", "fairness_key": "string|null",
        "payload_ref": "string|null", "trace": "string|null", "tenant": "string|null"}', '');
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
            SELECT coalesce(bool_or(draining), false) INTO drains FROM betimes.queues
             WHERE tenant_id = producer.tenant AND name = coalesce(asked ->> 'queue', 'default');
            IF key ->> 'key' IS NOT NULL AND key ->> 'form' IS DISTINCT FROM 'debounce' THEN
                holder := betimes.holder_of(producer.tenant, key ->> 'key', coalesce(key ->> 'form', 'unique'), cell.shards);
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
    IF drains THEN
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

-- A role may enqueue for a tenant from now on: it may call the one function and nothing else.
CREATE FUNCTION betimes.admit_producer(role text, tenant uuid, hints boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO betimes.producers AS known (role, tenant_id, hints) VALUES (admit_producer.role, tenant, admit_producer.hints)
    ON CONFLICT ON CONSTRAINT producers_pkey DO UPDATE SET hints = excluded.hints;
    EXECUTE format('GRANT USAGE ON SCHEMA betimes TO %I', admit_producer.role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION betimes.enqueue_v1(text, jsonb, jsonb) TO %I', admit_producer.role);
    RETURN true;
END
$$;

-- It may not any longer; false when it was not allowed to.
CREATE FUNCTION betimes.dismiss_producer(role text, tenant uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
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

-- The function acts as the system, which owns no table, not as whoever migrates, who owns them all. To own a function
-- takes the right to make one, for a moment.
GRANT USAGE ON SCHEMA betimes TO betimes_system WITH GRANT OPTION;
GRANT CREATE ON SCHEMA betimes TO betimes_system;
ALTER FUNCTION betimes.enqueue_v1(text, jsonb, jsonb) OWNER TO betimes_system;
REVOKE CREATE ON SCHEMA betimes FROM betimes_system;
DO $$
DECLARE
    helper regprocedure;
BEGIN
    FOR helper IN
        SELECT oid FROM pg_proc
         WHERE pronamespace = 'betimes'::regnamespace
           AND proname IN ('refuse', 'check_line', 'span_ms', 'check_members', 'check_whole', 'check_word', 'stored_retry',
                           'stored_options', 'due_of', 'holder_of', 'admit_producer', 'dismiss_producer', 'enqueue_v1')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', helper);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO betimes_system', helper);
    END LOOP;
END
$$;
