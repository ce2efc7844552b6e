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
