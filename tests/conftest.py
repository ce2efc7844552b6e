"""Profiles and fixtures shared by every kind of test."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
_default = "ci" if os.environ.get("CI") else "dev"  # noqa: TID251 -- the tests' own switch
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _default))  # noqa: TID251
