-- Credentials of endpoints are sealed under the data keys of their tenants.

ALTER TABLE betimes.endpoints ADD COLUMN key_version integer NOT NULL DEFAULT 0;
