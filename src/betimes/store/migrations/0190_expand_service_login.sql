-- A login for the service that is nobody but what it sets its role to.
--
-- The embedded PostgreSQL has one superuser, who owns the schema and migrates it. The service logs in with a role of its own:
-- whatever statement reached it, there is no role to fall back to that could do more than the service does.

CREATE FUNCTION betimes.ensure_login(login text, password text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    -- Several processes may start at once.
    PERFORM FROM betimes.cluster FOR UPDATE;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) THEN
        EXECUTE format('CREATE ROLE %I', login);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT PASSWORD %L',
                   login, password);
    EXECUTE format('GRANT betimes_api, betimes_system TO %I', login);
END
$$;
COMMENT ON FUNCTION betimes.ensure_login IS 'Make a login that can do nothing but act as the roles of the service. For the owner of the schema.';
REVOKE ALL ON FUNCTION betimes.ensure_login FROM PUBLIC;
