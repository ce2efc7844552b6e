"""Outgoing HTTP: building, guarding, sending and classifying a request."""
