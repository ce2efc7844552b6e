-- Breakers that are not closed are looked for every second by every worker: they are few.
CREATE INDEX breakers_broken_idx ON betimes.breakers (tenant_id, origin) WHERE state <> 0;
