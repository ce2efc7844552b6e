-- Retries that are due soon, by tenant: `upcoming` lists them beside runs and fires. Only what waits for another
-- attempt is in it, so the straight line pays nothing.
CREATE INDEX parcels_retry_idx ON betimes.parcels (tenant_id, visible_at) WHERE lane = 1 AND worker_id IS NULL;
