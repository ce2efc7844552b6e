"""Repair and housekeeping: reap, prune, roll partitions."""
