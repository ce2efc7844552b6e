-- What a database needs to live in virtual time and to tell what happened to it.
-- Functions in `sim` stand before those of pg_catalog in the search path of every session.
CREATE SCHEMA sim;
GRANT USAGE ON SCHEMA sim TO PUBLIC;
CREATE SEQUENCE sim.chance;
GRANT USAGE ON SEQUENCE sim.chance TO PUBLIC;

CREATE FUNCTION sim.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.current_setting('sim.now')::timestamptz $$;
CREATE FUNCTION sim.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.current_setting('sim.now')::timestamptz $$;
CREATE FUNCTION sim.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.current_setting('sim.now')::timestamptz $$;
CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.current_setting('sim.now')::timestamptz $$;
CREATE FUNCTION sim.gen_random_uuid() RETURNS uuid LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.md5('sim' || pg_catalog.nextval('sim.chance'))::uuid $$;
CREATE FUNCTION sim.random() RETURNS double precision LANGUAGE sql VOLATILE
    AS $$ SELECT (pg_catalog.hashint8(pg_catalog.nextval('sim.chance')) & 65535) / 65536.0::double precision $$;

-- Functions with a search path of their own find ours first, too.
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
                WHERE pronamespace = 'betimes'::regnamespace
                  AND array_to_string(proconfig, ' ') LIKE '%search_path%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = sim, pg_catalog, pg_temp', one.name);
    END LOOP;
    -- Defaults were bound when their tables were made.
    FOR one IN SELECT attrelid::regclass AS place, attname AS name, pg_get_expr(adbin, adrelid) AS said
                 FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
                 JOIN pg_class ON pg_class.oid = adrelid
                WHERE relnamespace = 'betimes'::regnamespace
                  AND pg_get_expr(adbin, adrelid) ~ '(now|_timestamp|gen_random_uuid|random)\(\)'
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', one.place, one.name,
                       regexp_replace(one.said, '(pg_catalog\.)?(now|\w+_timestamp|gen_random_uuid|random)\(\)', 'sim.\2()', 'g'));
    END LOOP;
END
$$;

-- Everything that happened to a run, a parcel, a shard, a decision, in the order of its writing.
CREATE TABLE sim.history (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    shard integer,
    id uuid,
    fact jsonb NOT NULL
);

CREATE FUNCTION sim.note_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = sim, pg_catalog AS $$
DECLARE
    had record := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
    has record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO sim.history (at, kind, shard, id, fact)
    VALUES (sim.now(), 'run', has.shard, has.id, jsonb_build_object(
        'op', lower(TG_OP), 'before', CASE WHEN TG_OP <> 'INSERT' THEN had.state END,
        'after', CASE WHEN TG_OP <> 'DELETE' THEN has.state END, 'fence', has.fence, 'job', has.job_id,
        'attempt', has.attempt, 'fire', has.fire_at, 'trigger', has.trigger, 'reason', has.reason));
    RETURN NULL;
END
$$;
CREATE TRIGGER noted AFTER INSERT OR DELETE ON betimes.runs FOR EACH ROW EXECUTE FUNCTION sim.note_run();
CREATE TRIGGER noted_change AFTER UPDATE ON betimes.runs FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.fence IS DISTINCT FROM NEW.fence) EXECUTE FUNCTION sim.note_run();

CREATE FUNCTION sim.note_parcel() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = sim, pg_catalog AS $$
BEGIN
    INSERT INTO sim.history (at, kind, shard, id, fact)
    VALUES (sim.now(), 'parcel', NEW.shard, NEW.id, jsonb_build_object(
        'fence', NEW.fence, 'worker', NEW.worker_id, 'runs', NEW.run_ids, 'visible', NEW.visible_at,
        'until', NEW.lease_until));
    RETURN NULL;
END
$$;
CREATE TRIGGER noted AFTER UPDATE ON betimes.parcels FOR EACH ROW
    WHEN (NEW.worker_id IS NOT NULL AND (OLD.fence IS DISTINCT FROM NEW.fence OR OLD.worker_id IS DISTINCT FROM NEW.worker_id))
    EXECUTE FUNCTION sim.note_parcel();

CREATE FUNCTION sim.note_shard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = sim, pg_catalog AS $$
BEGIN
    INSERT INTO sim.history (at, kind, shard, fact)
    VALUES (sim.now(), 'shard', NEW.shard, jsonb_build_object(
        'epoch', NEW.epoch, 'owner', NEW.owner, 'old_epoch', OLD.epoch, 'old_owner', OLD.owner,
        'old_until', OLD.lease_until, 'published', NEW.published_through, 'old_published', OLD.published_through));
    RETURN NULL;
END
$$;
CREATE TRIGGER noted AFTER UPDATE ON betimes.shards FOR EACH ROW
    WHEN (OLD.epoch IS DISTINCT FROM NEW.epoch OR OLD.owner IS DISTINCT FROM NEW.owner
          OR coalesce(NEW.published_through < OLD.published_through, false))
    EXECUTE FUNCTION sim.note_shard();
