-- Gates and lines are counted, held and offered without looking at what merely waits.

-- Those that are held by key, best rank first; a hundred thousand that wait behind one key hide nobody.
DROP INDEX betimes.parcels_gate_idx;
CREATE INDEX parcels_gate_idx ON betimes.parcels (tenant_id, gate, held, rank) WHERE gate IS NOT NULL;
DROP INDEX betimes.parcels_line_idx;
CREATE INDEX parcels_line_idx ON betimes.parcels (shard, line, held, rank) WHERE line IS NOT NULL;

-- What is in flight: never more entries than the limits allow.
CREATE INDEX parcels_gate_slot_idx ON betimes.parcels (tenant_id, gate) WHERE slot AND gate IS NOT NULL;
CREATE INDEX parcels_line_slot_idx ON betimes.parcels (shard, line) WHERE slot AND line IS NOT NULL;

-- A parcel may outlive its tenant for a while, and whoever meets it needs the row to lock; the pruner tidies up.
ALTER TABLE betimes.limits DROP CONSTRAINT limits_tenant_id_fkey;
ALTER TABLE betimes.limits ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN betimes.limits.used_at IS 'When somebody last relied on it, to the hour; rows that nobody needs are forgotten a day later.';
COMMENT ON COLUMN betimes.limits.max_inflight IS 'For kind key: null means what the queue says (per_key_concurrency), else 1.';
CREATE INDEX limits_used_idx ON betimes.limits (used_at);
