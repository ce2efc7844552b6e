"""When: pure functions from a specification, zone rules and an instant to fire times."""
