-- News for those who asked to be told, beside what acts and workers tell in their own statements.

-- name: tell :exec
-- Tell what has happened, in the transaction in which it did.
-- Guard: the caller's transaction
INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at)
SELECT news.shard, betimes.new_id(news.shard), news.tenant_id, news.type, news.subject, news.body::jsonb, statement_timestamp()
  FROM unnest(:shards::smallint[], :tenants::uuid[], :types::text[], :subjects::text[], :bodies::text[])
       AS news (shard, tenant_id, type, subject, body);
