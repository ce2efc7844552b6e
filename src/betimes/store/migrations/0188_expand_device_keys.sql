-- A device's key ends no later than the key of whoever let the device in.

ALTER TABLE betimes.device_grants ADD COLUMN key_until timestamptz;
COMMENT ON COLUMN betimes.device_grants.key_until IS 'When the key of the device ends, once somebody has said yes.';
