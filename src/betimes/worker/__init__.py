"""Workers: lease parcels, execute runs, report outcomes."""
