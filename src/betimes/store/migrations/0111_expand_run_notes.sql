-- What workers measured while they executed a run, and since when a parcel is leased.

ALTER TABLE betimes.run_notes ADD COLUMN metrics jsonb;
COMMENT ON COLUMN betimes.run_notes.metrics IS 'Numbers by name that the worker reported with the end of the run.';

ALTER TABLE betimes.parcels ADD COLUMN leased_at timestamptz;
COMMENT ON COLUMN betimes.parcels.leased_at IS 'When it was leased last; says something only while a worker has it.';
