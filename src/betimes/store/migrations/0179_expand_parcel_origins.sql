-- Runs behind an open breaker wait for it, instead of being leased and put back over and over.

ALTER TABLE betimes.parcels ADD COLUMN origin text;
COMMENT ON COLUMN betimes.parcels.origin IS 'The origin whose open breaker its runs wait for; they are brought forward when it closes.';
CREATE INDEX parcels_origin_idx ON betimes.parcels (tenant_id, origin) WHERE origin IS NOT NULL;
