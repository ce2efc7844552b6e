-- Whoever has waited longer goes first, also where two things are needed at once.

-- A parcel that is offered again keeps the time of it: for a while its place is kept as well.
ALTER TABLE betimes.parcels
    DROP CONSTRAINT parcels_held_since,
    ADD CONSTRAINT parcels_held_since CHECK (held = 0 OR held_at IS NOT NULL);
COMMENT ON COLUMN betimes.parcels.held_at IS 'Since when it is held; where it is not, when it was last offered again.';

CREATE FUNCTION betimes.claims(of_tenant uuid, of_gate text, of_rate text, asked_at timestamptz, most integer) RETURNS SETOF timestamptz
    LANGUAGE sql STABLE
    AS $$
    SELECT claim.rank FROM (
        -- Offered and on their way: a place is kept for five seconds, or a quarter of the time they have waited.
        (SELECT rank, queue, tenant_id FROM (
            SELECT rank, queue, tenant_id, held_at FROM betimes.parcels
             WHERE tenant_id = of_tenant AND gate = of_gate AND gate IS NOT NULL AND held = 0 AND worker_id IS NULL
             ORDER BY rank LIMIT 64) AS offered
          WHERE held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at)
        UNION ALL
        (SELECT rank, queue, tenant_id FROM (
            SELECT rank, queue, tenant_id, held_at FROM betimes.parcels
             WHERE tenant_id = of_tenant AND rate_key = of_rate AND rate_key IS NOT NULL AND held = 0 AND worker_id IS NULL
             ORDER BY rank LIMIT 64) AS offered
          WHERE held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at)
        UNION ALL
        -- Whoever gets the next token of its rate keeps its place at the gate, for as long.
        (SELECT rank, queue, tenant_id FROM betimes.parcels AS waiting
          WHERE tenant_id = of_tenant AND gate = of_gate AND gate IS NOT NULL AND held = 4
            AND held_at + greatest(interval '5 s', (held_at - rank) / 4) > asked_at
            AND NOT EXISTS (
                SELECT FROM betimes.parcels AS ahead
                 WHERE ahead.tenant_id = waiting.tenant_id AND ahead.rate_key = waiting.rate_key AND ahead.rate_key IS NOT NULL
                   AND ahead.held = 4 AND ahead.rank < waiting.rank)
          ORDER BY rank LIMIT 64)
        UNION ALL
        (SELECT rank, queue, tenant_id FROM betimes.parcels
          WHERE tenant_id = of_tenant AND rate_key = of_rate AND rate_key IS NOT NULL AND held = 4
          ORDER BY rank LIMIT most)
    ) AS claim
     -- Nothing is kept for those to whom nobody comes.
     WHERE NOT EXISTS (
            SELECT FROM betimes.queues
             WHERE queues.tenant_id = claim.tenant_id AND queues.name = claim.queue AND queues.paused_at IS NOT NULL)
       AND EXISTS (
            SELECT FROM betimes.workers
             WHERE (workers.tenant_id IS NULL OR workers.tenant_id = claim.tenant_id) AND NOT workers.draining
               AND workers.heartbeat_at > asked_at - interval '1 min'
               AND (claim.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)))
     ORDER BY claim.rank LIMIT most
$$;
COMMENT ON FUNCTION betimes.claims(uuid, text, text, timestamptz, integer) IS 'The ranks of those who come before younger ones at a concurrency key or a rate, best first.';
REVOKE ALL ON FUNCTION betimes.claims(uuid, text, text, timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION betimes.claims(uuid, text, text, timestamptz, integer) TO betimes_api, betimes_system;
