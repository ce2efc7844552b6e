"""Chaos from outside: real processes, real faults, evidence of its own and an oracle of its own.

`python -m blackbox` (or `make chaos`) starts a whole service with at least two processes of each
role, drives it through its public API only, breaks it on purpose, heals it, waits until everything
has ended, and then compares three things that know nothing of each other:

    oracle      plain arithmetic: which fires there must have been            (oracle.py)
    evidence    what targets and tasks wrote and synced before they answered  (target.py, tasks.py)
    tables      what the service itself says, read once at the end            (tables.py)

Nothing here imports the product's scheduling, store or checker: a mistake in those cannot hide in
the judgement. What is borrowed is plumbing: the proxy that breaks connections and the place of the
PostgreSQL binaries.
"""
