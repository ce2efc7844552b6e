-- Who wants to know of attempts that failed: asked with every flush in which one did, and mostly empty.
ALTER TABLE betimes.endpoints ADD COLUMN wants_failures boolean NOT NULL DEFAULT false;
UPDATE betimes.endpoints SET wants_failures = true
 WHERE event_types && '{*,run.*}'::text[] AND coalesce(filter ->> 'severity', 'info') IN ('info', 'warning');
CREATE INDEX endpoints_failures_idx ON betimes.endpoints (tenant_id) WHERE wants_failures AND disabled_at IS NULL;
