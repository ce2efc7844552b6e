-- How many shards a coordinator can serve, as it has measured; NULL when it could serve all.
ALTER TABLE betimes.nodes ADD COLUMN capacity integer CHECK (capacity > 0);
