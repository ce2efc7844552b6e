-- Which jobs carry a tag, for alert rules that select jobs by tags. Written when tags change, never when a job fires.

CREATE TABLE betimes.job_tags (
    tenant_id uuid NOT NULL,
    key       text NOT NULL,
    value     text NOT NULL,
    job_id    uuid NOT NULL,
    PRIMARY KEY (tenant_id, key, value, job_id)
);
COMMENT ON TABLE betimes.job_tags IS 'The tags of jobs, the other way round.';
GRANT SELECT, INSERT, DELETE ON betimes.job_tags TO betimes_api;
ALTER TABLE betimes.job_tags ENABLE ROW LEVEL SECURITY;
ALTER TABLE betimes.job_tags FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON betimes.job_tags TO betimes_api
    USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant());
CREATE POLICY whole_system ON betimes.job_tags TO betimes_system USING (true) WITH CHECK (true);

CREATE FUNCTION betimes.follow_tags() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM betimes.job_tags
         USING jsonb_each_text(OLD.options -> 'tags') AS tag
         WHERE job_tags.tenant_id = OLD.tenant_id AND job_tags.key = tag.key AND job_tags.value = tag.value
           AND job_tags.job_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO betimes.job_tags (tenant_id, key, value, job_id)
        SELECT NEW.tenant_id, tag.key, tag.value, NEW.id FROM jsonb_each_text(NEW.options -> 'tags') AS tag
            ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER jobs_tags_made AFTER INSERT ON betimes.jobs
   FOR EACH ROW WHEN (NEW.options ? 'tags') EXECUTE FUNCTION betimes.follow_tags();
CREATE TRIGGER jobs_tags_changed AFTER UPDATE OF options ON betimes.jobs
   FOR EACH ROW WHEN (OLD.options -> 'tags' IS DISTINCT FROM NEW.options -> 'tags') EXECUTE FUNCTION betimes.follow_tags();
CREATE TRIGGER jobs_tags_gone AFTER DELETE ON betimes.jobs
   FOR EACH ROW WHEN (OLD.options ? 'tags') EXECUTE FUNCTION betimes.follow_tags();
INSERT INTO betimes.job_tags (tenant_id, key, value, job_id)
SELECT tenant_id, tag.key, tag.value, id FROM betimes.jobs CROSS JOIN LATERAL jsonb_each_text(options -> 'tags') AS tag
 WHERE options ? 'tags';

ALTER TABLE betimes.alert_rules ADD COLUMN tags jsonb NOT NULL DEFAULT '{}';
