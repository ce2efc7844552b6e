-- Late work and repeated wishes: what was missed and is not settled yet, which episodes of catching up there are,
-- and when a business key may be forgotten.

-- Fires of a job that nobody has accounted for: as they were found, with everything settling needs to know.
CREATE TABLE betimes.gaps (
    shard     smallint NOT NULL,
    job_id    uuid NOT NULL,
    from_at   timestamptz NOT NULL,
    until_at  timestamptz NOT NULL,
    tenant_id uuid NOT NULL,
    revision  integer NOT NULL,
    priority  smallint NOT NULL,
    completes boolean NOT NULL DEFAULT false,
    queue     text NOT NULL,
    handler   text,
    schedule  jsonb NOT NULL,
    options   jsonb,
    PRIMARY KEY (shard, from_at, job_id),
    CONSTRAINT gaps_have_a_span CHECK (from_at <= until_at)
);
COMMENT ON TABLE betimes.gaps IS 'Missed fires, from the first to the last instant included, that are neither runs nor decisions yet.';
COMMENT ON COLUMN betimes.gaps.completes IS 'The job has no fire left: it is complete when its gap is settled.';

-- One row for each time a tenant had to catch up; its shard is the digest of the tenant.
CREATE TABLE betimes.catchups (
    shard         smallint NOT NULL,
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL,
    opened_at     timestamptz NOT NULL,
    found_at      timestamptz NOT NULL,
    paced_through timestamptz NOT NULL,
    first_fire_at timestamptz NOT NULL,
    last_fire_at  timestamptz NOT NULL,
    decided_at    timestamptz,
    runs          bigint NOT NULL DEFAULT 0 CHECK (runs >= 0),
    held          bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    released      bigint NOT NULL DEFAULT 0,
    dropped       bigint NOT NULL DEFAULT 0,
    per_second    double precision NOT NULL CHECK (per_second > 0),
    state         smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 4),
    decided_by    text,
    reason        text,
    PRIMARY KEY (shard, id)
) WITH (fillfactor = 50);
COMMENT ON TABLE betimes.catchups IS 'Episodes of catching up: how much was missed, what of it waits for approval, how far it is spread out.';
COMMENT ON COLUMN betimes.catchups.state IS '0 open, 1 waits for approval, 2 approved, 3 dropped, 4 over.';
COMMENT ON COLUMN betimes.catchups.paced_through IS 'Up to when its runs become visible, one after the other; the next one follows.';
CREATE UNIQUE INDEX catchups_current_idx ON betimes.catchups (shard, tenant_id) WHERE state < 2;
CREATE INDEX catchups_tenant_idx ON betimes.catchups (tenant_id, id);
CREATE INDEX catchups_decided_idx ON betimes.catchups (shard, id) WHERE state IN (2, 3);

ALTER TABLE betimes.parcels ADD COLUMN episode uuid;
COMMENT ON COLUMN betimes.parcels.episode IS 'The catch-up it belongs to while it waits for approval.';
CREATE INDEX parcels_episode_idx ON betimes.parcels (episode, shard, rank) WHERE episode IS NOT NULL AND held = 3;

ALTER TABLE betimes.dedupe ADD COLUMN prune_at timestamptz;
COMMENT ON COLUMN betimes.dedupe.prune_at IS 'When to look whether it may go: its window is over, and its holder is not active any more.';
COMMENT ON COLUMN betimes.dedupe.expires_at IS 'The end of its window; the creation itself where it has none.';
DROP INDEX betimes.dedupe_expires_idx;
CREATE INDEX dedupe_prune_idx ON betimes.dedupe (shard, prune_at);

GRANT SELECT, INSERT ON betimes.gaps TO betimes_api;
GRANT SELECT, UPDATE ON betimes.catchups TO betimes_api;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['gaps', 'catchups'] LOOP
        EXECUTE format('ALTER TABLE betimes.%I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE betimes.%I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('CREATE POLICY own_tenant ON betimes.%I TO betimes_api '
                       'USING (tenant_id = betimes.current_tenant()) WITH CHECK (tenant_id = betimes.current_tenant())',
                       tenant_table);
        EXECUTE format('CREATE POLICY whole_system ON betimes.%I TO betimes_system USING (true) WITH CHECK (true)',
                       tenant_table);
    END LOOP;
END
$$;
