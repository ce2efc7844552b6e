-- Order and limits: who may start when, next to whom, and why something waits.

-- What the publisher must know about a run to put it into a parcel; 0 and null mean: nothing special.
ALTER TABLE betimes.runs
    ADD COLUMN overlap   smallint NOT NULL DEFAULT 0 CHECK (overlap BETWEEN 0 AND 5),
    ADD COLUMN fair      smallint NOT NULL DEFAULT 0 CHECK (fair >= 0),
    ADD COLUMN when_full smallint NOT NULL DEFAULT 0 CHECK (when_full BETWEEN 0 AND 1),
    ADD COLUMN gate      text,
    ADD COLUMN blocked_by uuid;
COMMENT ON COLUMN betimes.runs.blocked_by IS 'The run that stood in the way when this one was skipped for overlap.';
COMMENT ON COLUMN betimes.runs.overlap IS 'What becomes of it while an earlier run of its job has not ended: 0 allow, 1 skip, 2 buffer_one, 3 buffer_all, 4 cancel_running, 5 replace.';
COMMENT ON COLUMN betimes.runs.fair IS 'The bucket of its fairness key; 0 without one.';
COMMENT ON COLUMN betimes.runs.when_full IS 'What becomes of it while its gate is full: 0 wait, 1 skip.';
COMMENT ON COLUMN betimes.runs.gate IS 'Its concurrency key.';

ALTER TABLE betimes.parcels
    ADD COLUMN fair      smallint NOT NULL DEFAULT 0,
    ADD COLUMN when_full smallint NOT NULL DEFAULT 0,
    ADD COLUMN held      smallint NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND 3),
    ADD COLUMN slot      boolean NOT NULL DEFAULT false,
    ADD COLUMN held_at   timestamptz,
    ADD COLUMN line      uuid,
    ADD COLUMN gate      text,
    ADD CONSTRAINT parcels_held_since CHECK ((held > 0) = (held_at IS NOT NULL)),
    ADD CONSTRAINT parcels_held_by_nobody CHECK (held = 0 OR worker_id IS NULL),
    ADD CONSTRAINT parcels_slot_is_leased CHECK (NOT slot OR worker_id IS NOT NULL),
    ADD CONSTRAINT parcels_gated_alone CHECK ((gate IS NULL AND line IS NULL) OR cardinality(run_ids) = 1);
COMMENT ON COLUMN betimes.parcels.held IS 'Why it is not offered to workers: 0 it is, 1 its gate or line is full, 2 overlap is decided when it is due, 3 it waits for approval.';
COMMENT ON COLUMN betimes.parcels.slot IS 'Leased and admitted through its gate and line: this is what in flight means for them.';
COMMENT ON COLUMN betimes.parcels.line IS 'The job whose runs go one after the other (overlap: buffer_one, buffer_all, cancel_running, replace).';
COMMENT ON COLUMN betimes.parcels.gate IS 'The concurrency key of its one run.';

DROP INDEX betimes.parcels_ready_idx;
CREATE INDEX parcels_ready_idx ON betimes.parcels (shard, queue, tenant_id, fair, rank) INCLUDE (visible_at, deliveries)
    WHERE worker_id IS NULL AND held = 0;
CREATE INDEX parcels_held_idx ON betimes.parcels (shard, held, visible_at) WHERE held > 0;
CREATE INDEX parcels_gate_idx ON betimes.parcels (tenant_id, gate, rank) WHERE gate IS NOT NULL;
CREATE INDEX parcels_line_idx ON betimes.parcels (shard, line, rank) WHERE line IS NOT NULL;
CREATE INDEX parcels_in_flight_idx ON betimes.parcels (tenant_id, queue) WHERE worker_id IS NOT NULL;
