-- Jobs that keep their runs for a time of their own are few: whoever forgets runs finds them by this.

CREATE INDEX jobs_retention_idx ON betimes.jobs (shard, id) WHERE options ? 'retain_ms';
