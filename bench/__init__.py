"""Measurements: `python -m bench NAME` runs one part, without a name it lists them."""
