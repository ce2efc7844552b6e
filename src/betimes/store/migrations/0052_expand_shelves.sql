-- Blobs are sealed, may lie outside the database, and are kept by class.

ALTER TABLE betimes.blobs ADD COLUMN retention text NOT NULL DEFAULT 'standard';
COMMENT ON COLUMN betimes.blobs.key_version IS 'Which data key of the tenant seals it; 0 is what was written before there were keys.';
COMMENT ON COLUMN betimes.blobs.location IS 'Where it is kept when that is not here: a scheme and a name.';
-- Looked for when they have expired, to be removed from where they are.
CREATE INDEX blobs_located_idx ON betimes.blobs (shard, expires_at) WHERE location IS NOT NULL;

-- A breaker that somebody has closed by hand stays closed until its origin fails again.
ALTER TABLE betimes.breakers ADD COLUMN reset_at timestamptz;
