-- A job whose last fires are planned the moment it is made ends without anybody planning it: whoever runs errands tells it.

ALTER TABLE betimes.jobs ADD COLUMN untold boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN betimes.jobs.untold IS 'It was complete when it was made, and is to be told when its last run is over.';
CREATE INDEX jobs_untold_idx ON betimes.jobs (shard, id) WHERE untold;
