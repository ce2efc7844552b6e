-- Workers with different handlers may share a queue: a parcel says what its worker must have, so that nobody
-- leases what only others can do.

ALTER TABLE betimes.parcels ADD COLUMN handler text;

COMMENT ON COLUMN betimes.parcels.handler IS
    'What a worker must have to lease it: a handler, or `:` and a kind of target; NULL: any worker of the queue may look.';
