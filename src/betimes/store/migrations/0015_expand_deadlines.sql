-- Start deadlines are found without a worker: an entry for runs that have one, none for the others.

ALTER TABLE betimes.runs ADD COLUMN start_by timestamptz;
COMMENT ON COLUMN betimes.runs.start_by IS 'Handed out later than this for the first time, it expires instead of running.';
CREATE INDEX runs_start_by_idx ON betimes.runs (shard, start_by) WHERE start_by IS NOT NULL;

ALTER TABLE betimes.shards ADD COLUMN expired_through timestamptz;
COMMENT ON COLUMN betimes.shards.expired_through IS 'Every run that had to start by then has been looked at.';
