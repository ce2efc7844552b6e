-- Whether a job has a gap: what fires beside fires that are still to be caught up with is decided upon when it is due.
CREATE INDEX gaps_job_idx ON betimes.gaps (shard, job_id);
