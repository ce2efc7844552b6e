-- Work that is asked for inside somebody else's transaction, in the same database.
-- The asker's transaction may live for hours, so it touches nothing that the service waits for: it writes one row
-- of its own into the intake, and a coordinator makes the run after the commit, in a short transaction of ours.

CREATE TABLE betimes.producers (
    role       text NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    hints      boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (role, tenant_id)
);
COMMENT ON TABLE betimes.producers IS 'Database roles that may enqueue by the function, and for which tenants.';
COMMENT ON COLUMN betimes.producers.hints IS
    'Whether its commits notify. NOTIFY makes commits wait for each other, which very busy producers would rather not.';

CREATE TABLE betimes.intake (
    shard        smallint NOT NULL,
    -- Also the id of the run that is made from it.
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL,
    producer     text NOT NULL,
    asked_at     timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    priority     smallint NOT NULL,
    queue        text NOT NULL,
    handler      text NOT NULL,
    payload      bytea,
    options      jsonb,
    dedupe_key   text,
    dedupe_form  text,
    dedupe_ms    bigint,
    -- Why no run can be made from it, which should never be; then it stays for somebody to look at.
    refused      text,
    PRIMARY KEY (shard, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE betimes.intake IS 'Runs that were asked for in transactions of others, until they are made.';
CREATE INDEX intake_open_idx ON betimes.intake (shard, id) WHERE refused IS NULL;
CREATE INDEX intake_tenant_idx ON betimes.intake (tenant_id, dedupe_key);

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['producers', 'intake'] LOOP
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
GRANT SELECT ON betimes.producers, betimes.intake TO betimes_api;

-- Errors of the functions below: class BT, then the status the API would answer with.
CREATE FUNCTION betimes.refuse(status integer, sentence text, pointer text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'BT' || status, MESSAGE = sentence, DETAIL = pointer;
END
$$;

-- One line of text; the API allows the same.
CREATE FUNCTION betimes.check_line(line text, what text, most integer, pointer text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(length(line), 0) NOT BETWEEN 1 AND most THEN
        PERFORM betimes.refuse(400, format('expected %s of 1-%s characters, got %s', what, most, coalesce(length(line), 0)),
                               pointer);
    ELSIF line ~ '[[:cntrl:]]' THEN
        PERFORM betimes.refuse(400, format('expected %s of printable characters', what), pointer);
    END IF;
END
$$;

-- A duration as the API takes it (PT15M, 15m, 1h 30m, seconds as a number) in milliseconds.
CREATE FUNCTION betimes.span_ms(source jsonb, pointer text, most interval DEFAULT interval '36600 days') RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp SET "IntervalStyle" = 'postgres' AS $$
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
$$;

-- What an object may hold: its members by name and type, everything else refused.
CREATE FUNCTION betimes.check_members(given jsonb, known jsonb, pointer text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
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

CREATE FUNCTION betimes.check_whole(given jsonb, lowest bigint, highest bigint, pointer text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF given IS NOT NULL AND ((given #>> '{}')::numeric NOT BETWEEN lowest AND highest OR (given #>> '{}')::numeric % 1 <> 0) THEN
        PERFORM betimes.refuse(400, format('expected a whole number within %s-%s, got %s', lowest, highest, given), pointer);
    END IF;
END
$$;

CREATE FUNCTION betimes.check_word(given jsonb, words text[], pointer text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF given IS NOT NULL AND (given #>> '{}') <> ALL (words) THEN
        PERFORM betimes.refuse(400, format('expected %s, got %s', array_to_string(words, ' or '), left(given::text, 80)), pointer);
    END IF;
END
$$;

-- A retry policy as the API takes it, in the form in which it is stored.
CREATE FUNCTION betimes.stored_retry(asked jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
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

-- Everything about a run but its time and its key, checked, in the form in which it is stored.
CREATE FUNCTION betimes.stored_options(asked jsonb) RETURNS jsonb
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
    IF asked ->> 'fairness_key' IS NOT NULL THEN
        PERFORM betimes.check_line(asked ->> 'fairness_key', 'a fairness key', 255, '/fairness_key');
        stored := stored || jsonb_build_object('fairness_key', asked -> 'fairness_key');
    END IF;
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

-- When a run is due: at once, after a delay, or at a time with an offset.
CREATE FUNCTION betimes.due_of(asked jsonb) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET "DateStyle" = 'ISO, YMD' AS $$
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
$$;

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
