-- What a job shows is its row and the runs that are planned of it. Lists filter and sort by what they show, all by these.

CREATE FUNCTION betimes.is_under_way(of_shard smallint, of_job uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM (SELECT runs.state, runs.trigger FROM betimes.runs
                      WHERE runs.shard = of_shard AND runs.job_id = of_job
                      ORDER BY runs.id DESC LIMIT 256) AS newest
         WHERE newest.state < 4 AND newest.trigger = 0)
$$;
COMMENT ON FUNCTION betimes.is_under_way(smallint, uuid) IS
    'Whether planned fires of a job are not over: then it shows as active, though it may be stored as complete.';

CREATE FUNCTION betimes.next_planned(of_shard smallint, of_job uuid, soon uuid) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT runs.fire_at FROM betimes.runs
     WHERE runs.shard = of_shard AND runs.job_id = of_job AND runs.id >= soon AND runs.state < 4 AND runs.trigger = 0
     ORDER BY runs.id LIMIT 1
$$;
COMMENT ON FUNCTION betimes.next_planned(smallint, uuid, uuid) IS
    'The next fire of a job that is planned already; its row names the first one that is not.';

REVOKE EXECUTE ON FUNCTION betimes.is_under_way, betimes.next_planned FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.is_under_way, betimes.next_planned TO betimes_system, betimes_api;

-- Nobody has ever written it.
ALTER TABLE betimes.shards DROP COLUMN planned_through;
