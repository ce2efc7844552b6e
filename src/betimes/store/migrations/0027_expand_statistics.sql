-- A table that grows faster than autovacuum looks at it is planned for as if it were small: what it holds is counted anew
-- when it has grown eightfold.

CREATE FUNCTION betimes.survey(least_bytes bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
$$;
COMMENT ON FUNCTION betimes.survey(bigint) IS 'Count anew what tables hold that are at least so large and eight times as large as when they were last counted.';
REVOKE ALL ON FUNCTION betimes.survey(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.survey(bigint) TO betimes_system;
