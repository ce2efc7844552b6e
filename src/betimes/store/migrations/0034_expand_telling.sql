-- Events about the ends of runs are written where the ends are: in the statements of the workers.

-- The id as every interface shows it: a prefix, and 26 characters of Crockford's base 32.
CREATE FUNCTION betimes.id_text(prefix text, id uuid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT prefix || '_' || string_agg(
               substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM 5 * place + 1 FOR 5)::bit(5)::integer + 1, 1),
               '' ORDER BY place)
      FROM (SELECT '00' || ('x' || replace(id::text, '-', ''))::bit(128)::text AS bits) AS number,
           generate_series(0, 25) AS place
$$;

-- An id made now in a shard, as the service makes them: milliseconds, shard, chance.
CREATE FUNCTION betimes.new_id(shard smallint) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12, '0') || '8' || lpad(to_hex(shard::integer), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17, 16))::uuid
$$;

-- Tenants that want to be told of successes, too; most do not, and nothing is written for them.
CREATE INDEX tenants_told_all_idx ON betimes.tenants (id) WHERE settings ->> 'run_events' = 'all';
