-- People: how a member signs in, the sessions of browsers, and grants for devices without one.

ALTER TABLE betimes.members
    ADD COLUMN password      bytea,
    ADD COLUMN salt          bytea,
    ADD COLUMN code          bytea,
    ADD COLUMN code_until    timestamptz,
    ADD COLUMN created_by    text,
    ADD COLUMN signed_in_at  timestamptz;
COMMENT ON COLUMN betimes.members.code IS 'Digest of the one-time code of an invitation.';
CREATE INDEX members_code_idx ON betimes.members (code) WHERE code IS NOT NULL;

CREATE TABLE betimes.sessions (
    digest     bytea PRIMARY KEY,
    tenant_id  uuid NOT NULL REFERENCES betimes.tenants ON DELETE CASCADE,
    -- One of the two: who signed in, or with which key.
    member_id  uuid,
    key_id     text,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_of_somebody CHECK ((member_id IS NULL) <> (key_id IS NULL)),
    FOREIGN KEY (tenant_id, member_id) REFERENCES betimes.members ON DELETE CASCADE
) WITH (fillfactor = 70);
COMMENT ON TABLE betimes.sessions IS 'Browsers that signed in; only a digest of the cookie is kept.';
CREATE INDEX sessions_expires_idx ON betimes.sessions (expires_at);
CREATE INDEX sessions_member_idx ON betimes.sessions (tenant_id, member_id) WHERE member_id IS NOT NULL;

CREATE TABLE betimes.device_grants (
    digest      bytea PRIMARY KEY,
    user_code   text NOT NULL UNIQUE,
    name        text NOT NULL,
    -- Whose it is, once somebody has said yes.
    tenant_id   uuid REFERENCES betimes.tenants ON DELETE CASCADE,
    scopes      text[] NOT NULL DEFAULT '{}',
    answered_by text,
    -- 0 open, 1 approved, 2 denied, 3 redeemed
    state       smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 3),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    polled_at   timestamptz
);
CREATE INDEX device_grants_expires_idx ON betimes.device_grants (expires_at);

GRANT SELECT, DELETE ON betimes.sessions TO betimes_api;
GRANT SELECT ON betimes.device_grants TO betimes_api;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY['sessions', 'device_grants'] LOOP
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
