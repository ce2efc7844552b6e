"""JSON shapes of the public API, shared by api and sdk; no behaviour."""
