-- A payload behind a reference outlives its class of retention while something may still need it: a job that fires, a
-- run that has not ended, an open dead letter. Entries for what has a reference, none for everything else.

CREATE INDEX runs_payload_ref_idx ON betimes.runs (tenant_id, (options ->> 'payload_ref')) WHERE options ? 'payload_ref';
CREATE INDEX jobs_payload_ref_idx ON betimes.jobs (tenant_id, (options ->> 'payload_ref')) WHERE options ? 'payload_ref';

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
COMMENT ON FUNCTION betimes.is_referenced(uuid, uuid) IS 'Whether a job that fires, a run that has not ended or an open dead letter needs a blob.';
REVOKE ALL ON FUNCTION betimes.is_referenced(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.is_referenced(uuid, uuid) TO betimes_api, betimes_system;
