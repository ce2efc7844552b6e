"""The web console: static pages over the public API."""
