"""Mutation testing runs these tests; it still asks for the id of a test by its old private name."""

import pytest

if not hasattr(pytest.Item, "_nodeid"):
    setattr(pytest.Item, "_nodeid", property(lambda item: item.nodeid))  # noqa: B010 -- no such attribute to a type checker
