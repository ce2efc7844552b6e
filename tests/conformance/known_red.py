"""What is known to be red today, rule by rule and road by road: the to-do list of the one engine.

Each of these is expected to fail, strictly: whoever mends one takes it out of the table.
"""

from collections.abc import Mapping

from conformance.roads import HTTP

APPS = (HTTP,)

SEEN: Mapping[str, tuple[tuple[str, ...], str]] = {
    "test_poison_takes_no_neighbour_with_it": (
        APPS,
        "a suspect is leased beside three others that are under way; all lose an attempt with it",
    ),
    # Outcomes that mean something else to workers of apps.
    "test_a_time_limit_is_no_type_of_error_that_a_policy_chooses": (
        APPS,
        "dead, PERMANENT_ERROR: a time limit is reported as an error of the type TimedOut",
    ),
    "test_a_result_over_the_limit_is_kept_elsewhere": (
        APPS,
        "succeeded with a note that the result was dropped: nothing of it is kept",
    ),
}
"""By rule: on which roads it is red, and what is seen there instead."""
KNOWN_RED = {(rule, road): seen for rule, (roads, seen) in SEEN.items() for road in roads}


def reason_of(rule: str, road: str) -> str:
    """What pytest says about it."""
    return f"{KNOWN_RED[rule, road]}; one engine (issue: one engine) mends it"
