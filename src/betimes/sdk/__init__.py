"""The client library: what users import."""
