-- Rates by key, runs that were moved, and how long a queue keeps what has ended.

-- The key of a rate that a run shares with others of its tenant.
ALTER TABLE betimes.runs
    ADD COLUMN rate_key text,
    ADD COLUMN moved boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN betimes.runs.rate_key IS 'The key of a rate it shares with others of its tenant.';
COMMENT ON COLUMN betimes.runs.moved IS 'Somebody gave it another time than its id says: it answers for no other run of its job.';

ALTER TABLE betimes.parcels
    ADD COLUMN rate_key text,
    DROP CONSTRAINT parcels_gated_alone,
    ADD CONSTRAINT parcels_gated_alone CHECK ((gate IS NULL AND line IS NULL AND rate_key IS NULL) OR cardinality(run_ids) = 1),
    DROP CONSTRAINT parcels_held_check,
    ADD CONSTRAINT parcels_held_check CHECK (held BETWEEN 0 AND 4);
COMMENT ON COLUMN betimes.parcels.rate_key IS 'The key of the rate of its one run.';
COMMENT ON COLUMN betimes.parcels.held IS 'Why it is not offered to workers: 0 it is, 1 its gate or line is full, 2 overlap is decided when it is due, 3 it waits for approval, 4 its rate is used up for now.';
CREATE INDEX parcels_rate_idx ON betimes.parcels (tenant_id, rate_key, held, rank) WHERE rate_key IS NOT NULL;

COMMENT ON COLUMN betimes.limits.rate_limit IS 'For kind rate: what was said for the key; null means what the queue says (key_rate_limit), else no limit.';

ALTER TABLE betimes.queues
    ADD COLUMN key_rate_limit  integer CHECK (key_rate_limit > 0),
    ADD COLUMN key_rate_per_ms bigint CHECK (key_rate_per_ms > 0),
    ADD COLUMN retain_ms       bigint CHECK (retain_ms > 0);
COMMENT ON COLUMN betimes.queues.key_rate_limit IS 'The rate of each rate limit key for which nothing else was said.';
COMMENT ON COLUMN betimes.queues.retain_ms IS 'How long after their end its runs are kept, if that is shorter than runs are kept at all.';
