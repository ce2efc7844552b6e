-- Alert rules, their episodes, and the silences over them.

-- name: list_rules :many
-- Rules of a tenant in the order of their names, page by page.
-- Index: alert_rules_pkey
-- Returns: tenant_id uuid, name text, condition text, threshold float8, window_ms int8, for_ms int8, severity text, jobs _uuid, queues _text, tags text, targets _text, disabled bool, checked_at timestamptz, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
SELECT tenant_id, name, condition, threshold, window_ms, for_ms, severity, jobs, queues, tags::text AS tags, targets, disabled,
       checked_at, revision, created_at, created_by, updated_at
  FROM betimes.alert_rules WHERE tenant_id = :tenant::uuid AND name > :after::text ORDER BY name LIMIT :most::integer;

-- name: read_rule :maybe
-- One rule of a tenant.
-- Returns: tenant_id uuid, name text, condition text, threshold float8, window_ms int8, for_ms int8, severity text, jobs _uuid, queues _text, tags text, targets _text, disabled bool, checked_at timestamptz, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
SELECT tenant_id, name, condition, threshold, window_ms, for_ms, severity, jobs, queues, tags::text AS tags, targets, disabled,
       checked_at, revision, created_at, created_by, updated_at
  FROM betimes.alert_rules WHERE tenant_id = :tenant::uuid AND name = :name::text;

-- name: count_rules :one
-- How many rules a tenant has.
-- Returns: rules int8
SELECT count(*) AS rules FROM betimes.alert_rules WHERE tenant_id = :tenant::uuid;

-- name: insert_rule :maybe
-- Keep a new rule; a name that is taken makes none.
-- Guard: the primary key
-- Returns: revision int4
INSERT INTO betimes.alert_rules (tenant_id, name, condition, threshold, window_ms, for_ms, severity, jobs, queues, tags, targets, disabled,
                                 next_check_at, created_at, created_by, updated_at)
VALUES (:tenant::uuid, :name::text, :condition::text, :threshold::double precision, :window_ms::bigint, :for_ms::bigint,
        :severity::text, :jobs::uuid[], :queues::text[], :tags::text::jsonb, :targets::text[], :disabled::boolean, :now::timestamptz, :now::timestamptz,
        :created_by::text, :now::timestamptz)
ON CONFLICT DO NOTHING
RETURNING revision;

-- name: change_rule :maybe
-- Replace a rule; the revision rises.
-- Guard: the revision it replaces
-- Returns: revision int4
UPDATE betimes.alert_rules
   SET condition = :condition::text, threshold = :threshold::double precision, window_ms = :window_ms::bigint, for_ms = :for_ms::bigint,
       severity = :severity::text, jobs = :jobs::uuid[], queues = :queues::text[], tags = :tags::text::jsonb, targets = :targets::text[],
       disabled = :disabled::boolean, next_check_at = :now::timestamptz, revision = revision + 1, updated_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND revision = :revision::integer
RETURNING revision;

-- name: delete_rule :maybe
-- Forget a rule.
-- Returns: name text
DELETE FROM betimes.alert_rules WHERE tenant_id = :tenant::uuid AND name = :name::text RETURNING name;

-- name: due_rules :many
-- Rules that are to be looked at, the longest waiting first.
-- Index: alert_rules_check_idx
-- Returns: tenant_id uuid, name text, next_check_at timestamptz
SELECT tenant_id, name, next_check_at FROM betimes.alert_rules
 WHERE NOT disabled AND next_check_at <= coalesce(:now::timestamptz, statement_timestamp())
 ORDER BY next_check_at LIMIT :most::integer;

-- name: take_rule :maybe
-- Look at a rule, unless somebody else does.
-- Guard: the time it was to be looked at
-- Returns: tenant_id uuid, name text, condition text, threshold float8, window_ms int8, for_ms int8, severity text, jobs _uuid, queues _text, tags text, targets _text, disabled bool, checked_at timestamptz, revision int4, created_at timestamptz, created_by text, updated_at timestamptz
UPDATE betimes.alert_rules SET next_check_at = :next_at::timestamptz, checked_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND name = :name::text AND next_check_at = :due_at::timestamptz AND NOT disabled
RETURNING alert_rules.tenant_id, alert_rules.name, alert_rules.condition, alert_rules.threshold, alert_rules.window_ms,
          alert_rules.for_ms, alert_rules.severity, alert_rules.jobs, alert_rules.queues, alert_rules.tags::text AS tags,
          alert_rules.targets, alert_rules.disabled,
          alert_rules.checked_at, alert_rules.revision, alert_rules.created_at, alert_rules.created_by, alert_rules.updated_at;

-- name: open_alerts :many
-- Episodes of a rule that are not over.
-- Scatter: the subjects of a rule lie in every shard
-- Index: alerts_rule_idx
-- Returns: shard int2, id uuid, subject text, state int2, is_told bool, since timestamptz
SELECT shard, id, subject, state, is_told, since FROM betimes.alerts
 WHERE tenant_id = :tenant::uuid AND rule = :rule::text AND resolved_at IS NULL LIMIT :most::integer;

-- name: begin_alert :maybe
-- Begin an episode, unless one is open.
-- Guard: one open episode for each rule and subject
-- Returns: id uuid
INSERT INTO betimes.alerts (shard, id, tenant_id, rule, condition, subject, severity, state, is_told, value, threshold, since, fired_at)
VALUES (:shard::smallint, :id::uuid, :tenant::uuid, :rule::text, :condition::text, :subject::text, :severity::text, :state::smallint,
        :is_told::boolean, :value::double precision, :threshold::double precision, :now::timestamptz, :fired_at::timestamptz)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: turn_alert :maybe
-- Bring an episode forward from the state it was read in.
-- Guard: the state it was read in, and whether it was told
-- Returns: since timestamptz
UPDATE betimes.alerts
   SET state = :state::smallint, is_told = :is_told::boolean, value = coalesce(:value::double precision, value),
       fired_at = coalesce(fired_at, :fired_at::timestamptz), resolved_at = :resolved_at::timestamptz
 WHERE shard = :shard::smallint AND id = :id::uuid AND state = :was::smallint AND is_told = :was_told::boolean
RETURNING since;

-- name: forget_alert :exec
-- Forget an episode that came to nothing.
-- Guard: only one that has not fired
DELETE FROM betimes.alerts WHERE shard = :shard::smallint AND id = :id::uuid AND state = 0;

-- name: end_alerts :exec
-- End the episodes of a rule that is gone; nobody is told.
-- Scatter: the subjects of a rule lie in every shard
-- Guard: only open ones of one rule
UPDATE betimes.alerts SET state = 2, resolved_at = :now::timestamptz
 WHERE tenant_id = :tenant::uuid AND rule = :rule::text AND resolved_at IS NULL;

-- name: list_alerts :many
-- Episodes of a tenant, the newest first, page by page.
-- Scatter: episodes of a tenant lie in every shard
-- Index: alerts_tenant_idx
-- Returns: id uuid, rule text, condition text, subject text, severity text, state int2, is_told bool, value float8, threshold float8, since timestamptz, fired_at timestamptz, resolved_at timestamptz
SELECT id, rule, condition, subject, severity, state, is_told, value, threshold, since, fired_at, resolved_at
  FROM betimes.alerts
 WHERE tenant_id = :tenant::uuid AND id < :before_id::uuid AND (:states::smallint[] IS NULL OR state = ANY (:states::smallint[]))
   AND (:rule::text IS NULL OR rule = :rule::text)
 ORDER BY id DESC LIMIT :most::integer;

-- name: list_silences :many
-- Silences of a tenant that are not over.
-- Index: silences_pkey
-- Returns: id uuid, rule text, subject text, reason text, until timestamptz, created_at timestamptz, created_by text
SELECT id, rule, subject, reason, until, created_at, created_by FROM betimes.silences
 WHERE tenant_id = :tenant::uuid AND until > :now::timestamptz AND id > :after::uuid ORDER BY id LIMIT :most::integer;

-- name: insert_silence :exec
-- Keep a silence.
-- Guard: the primary key
INSERT INTO betimes.silences (tenant_id, id, rule, subject, reason, until, created_at, created_by)
VALUES (:tenant::uuid, :id::uuid, :rule::text, :subject::text, :reason::text, :until::timestamptz, :now::timestamptz, :created_by::text)
ON CONFLICT DO NOTHING;

-- name: delete_silence :maybe
-- End a silence.
-- Returns: id uuid
DELETE FROM betimes.silences WHERE tenant_id = :tenant::uuid AND id = :id::uuid RETURNING id;
