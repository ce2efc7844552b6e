-- Logins of the service, made by the owner of the schema.

-- name: ensure_login :one
-- Make or mend the login that the service uses; it can act as the roles of the service and do nothing else.
-- Guard: one at a time, by the row of the cell
-- Returns: login text
SELECT :login::text AS login FROM betimes.ensure_login(:login::text, :password::text);
