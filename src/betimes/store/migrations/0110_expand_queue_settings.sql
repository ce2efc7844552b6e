-- Queues without dead letters, and why and until when a queue drains.

ALTER TABLE betimes.queues
    ADD COLUMN dead_letter  boolean NOT NULL DEFAULT true,
    ADD COLUMN drain_until  timestamptz,
    ADD COLUMN drain_reason text;
COMMENT ON COLUMN betimes.queues.dead_letter IS 'Whether runs that are out of attempts are laid aside; without it they only end as dead.';
COMMENT ON COLUMN betimes.queues.drain_until IS 'When a queue that drains accepts new work again by itself.';

-- The function that enqueues is long and is written anew by whoever changes it; here one condition of it changes, whatever else it says by now.
DO $$
DECLARE
    said   text := pg_get_functiondef('betimes.enqueue_v1(text, jsonb, jsonb)'::regprocedure);
    before text := 'bool_or(draining)';
    after  text := 'bool_or(draining AND (drain_until IS NULL OR drain_until > clock_timestamp()))';
BEGIN
    IF position(before IN said) = 0 THEN
        RAISE EXCEPTION 'expected betimes.enqueue_v1 to ask whether the queue drains, got %', said;
    END IF;
    EXECUTE replace(said, before, after);
END
$$;
