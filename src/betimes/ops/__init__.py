"""Use cases: one transaction per verb, shared by every edge."""
