"""The embedded PostgreSQL: finding its binaries, starting, watching and stopping it."""
