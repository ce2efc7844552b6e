-- Long work begins when it is due, so that it can be paced and put off.

ALTER TABLE betimes.operations ADD COLUMN due_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX operations_due_idx ON betimes.operations (due_at) WHERE state < 2;
