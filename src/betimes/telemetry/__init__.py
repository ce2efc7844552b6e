"""Spans, counters and the table of events; logs are one handler of those events."""
