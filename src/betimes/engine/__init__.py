"""From the lease of a run to its end: what holds on every road by which runs are executed."""
