-- The brake of the whole cell, and nodes that are asked to go.

ALTER TABLE betimes.cluster ADD COLUMN paused_reason text;
ALTER TABLE betimes.nodes ADD COLUMN drain_at timestamptz;
COMMENT ON COLUMN betimes.nodes.drain_at IS 'Since when the node is asked to finish what it holds and to stop.';
