-- What the function that enqueues takes beside what it took: keys of rates. What only the service can check is refused with the way that can.

-- The parts of 0070 that grow are written anew as a whole.
CREATE OR REPLACE FUNCTION betimes.stored_options(asked jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
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

-- What the API takes and this function cannot, with the way that can: the rules for addresses are settings of the service.
CREATE FUNCTION betimes.check_elsewhere(asked jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
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

-- Whether a value may fit a JSON Schema, by the words that schemas of functions are made of: types, members, what is required, what may
-- stand there, and references inside the schema. Words that are not known here are let through; the worker knows them all.
CREATE FUNCTION betimes.may_fit(given jsonb, wanted jsonb, whole jsonb, depth integer DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
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
$$;

-- Whether some worker may take a payload: none has said what its handler accepts, or the newest or a living one's schema lets it through.
CREATE FUNCTION betimes.may_be_taken(tenant uuid, wanted text, payload jsonb) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
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

-- Ask for a run inside the caller's own transaction: it is made when that commits, and never otherwise.
-- `options` holds what the body of POST /v1/runs holds beside handler and payload; `tenant` names one of several.
CREATE OR REPLACE FUNCTION betimes.enqueue_v1(
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
            SELECT coalesce(bool_or(draining), false) INTO drains FROM betimes.queues
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

DO $$
DECLARE
    helper regprocedure;
BEGIN
    FOR helper IN
        SELECT oid FROM pg_proc
         WHERE pronamespace = 'betimes'::regnamespace AND proname IN ('check_elsewhere', 'may_fit', 'may_be_taken')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', helper);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO betimes_system', helper);
    END LOOP;
END
$$;
