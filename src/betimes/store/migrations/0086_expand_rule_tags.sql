-- Alert rules select jobs by tags as well.
ALTER TABLE betimes.alert_rules ADD COLUMN tags jsonb NOT NULL DEFAULT '{}';
