-- Data keys that seal payloads and results in the rows of runs and jobs. Nobody counts those, so such a key stays as long as
-- its tenant.
ALTER TABLE betimes.data_keys ADD COLUMN inline boolean NOT NULL DEFAULT false;
GRANT UPDATE (inline) ON betimes.data_keys TO betimes_api;
