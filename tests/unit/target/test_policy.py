"""Rules of the operator and of tenants."""

import pytest

from betimes.domain.errors import BadSetting
from betimes.target.policy import base_policy, policy_for
from betimes.target.url import PortRange

BASE = base_policy(ports=["443", "8000-8010"])


def test_settings_become_rules() -> None:
    """Ports, networks and names."""
    policy = base_policy(allow=["10.1.0.0/16"], names=["Hooks.Internal"], ports=["1-2", "443"])
    assert policy.ports == (PortRange(1, 2), PortRange(443, 443))
    assert policy.names == {"hooks.internal"}
    assert policy.addresses.refusal_of("10.1.0.1") is None


@pytest.mark.parametrize("ports", ["", "a", "1-", "0", "70000", "9-8"])
def test_bad_ports_are_refused_at_the_start(ports: str) -> None:
    """Not when the first job runs."""
    with pytest.raises(BadSetting, match=r"target\.ports"):
        base_policy(ports=[ports])


@pytest.mark.parametrize("network", ["", "x", "10.1.0.1/16"])
def test_bad_networks_are_refused_at_the_start(network: str) -> None:
    """With the name of the setting."""
    with pytest.raises(BadSetting, match=r"target\.allow"):
        base_policy(allow=[network])


def test_a_tenant_can_be_given_more() -> None:
    """And nobody else with it."""
    policy = policy_for(
        BASE,
        {"targets": {"allow": ["10.1.0.0/16"], "names": ["Hooks.internal"], "plain_http": True}},
    )
    assert policy.addresses.refusal_of("10.1.0.1") is None
    assert BASE.addresses.refusal_of("10.1.0.1") == "private"
    assert policy.names == {"hooks.internal"}
    assert (policy.plain_http, BASE.plain_http) == (True, False)
    assert policy.ports == BASE.ports


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"targets": None},
        {"targets": []},
        {"targets": {"allow": "10.0.0.0/8", "names": 7, "plain_http": "yes"}},
        {"targets": {"allow": ["nonsense", 10, None], "names": [3]}},
    ],
)
def test_what_cannot_be_read_opens_nothing(settings: dict[str, object]) -> None:
    """A slip of an administrator closes, it does not open."""
    assert policy_for(BASE, settings) == BASE
