"""Deterministic simulation: the real services over virtual time and a real PostgreSQL.

`make simulate SEEDS=n` runs n seeds; `SEED=k` replays one exactly, `SHRINK=1` makes it smaller.

    seed ──▶ plan (printed) ──▶ world: chaos ──▶ heal ──▶ settle ──▶ history ──▶ judge
                                  │
                     loop       virtual time, ready callbacks in an order the seed chooses
                     boundary   the driver below `store.Database`: latency, faults, lost replies
                     server     PostgreSQL whose clock and chance are those of the world
"""
