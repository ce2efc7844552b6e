-- What the verbs of control need: completed jobs that are to go are found by an index, and a request
-- of a tenant may keep a shard's cursor where it is (FOR SHARE asks for the right to update a column).

CREATE INDEX jobs_spent_idx ON betimes.jobs (shard, id) WHERE state = 3 AND after_completion = 1;

GRANT UPDATE (swept_through) ON betimes.shards TO betimes_api;
