-- A secret is bound to origins: it is sent nowhere else, whoever names it.
--
-- What was stored before goes on as it was, anywhere; whoever writes a new one says where.

ALTER TABLE betimes.secrets ADD COLUMN origins text[] NOT NULL DEFAULT '{*}';
ALTER TABLE betimes.secrets ALTER COLUMN origins DROP DEFAULT;
COMMENT ON COLUMN betimes.secrets.origins IS 'Where it may be sent: scheme, host and port, *. for names below, * for anywhere. The same in every version.';

GRANT UPDATE (origins) ON betimes.secrets TO betimes_api;
