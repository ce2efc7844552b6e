"""Owners of shards: plan fires into runs, publish due runs as parcels."""
