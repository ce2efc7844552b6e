"""Which addresses may be called."""

from ipaddress import ip_address, ip_network

import pytest

from betimes.target.address import AddressPolicy, read_address

PUBLIC = AddressPolicy()


def words(text: str) -> list[str]:
    return text.split()


REFUSED = words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1
127.255.255.254 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1
192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9
224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::2 ::127.0.0.1
::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
100::1 2001::1 2001:0:53aa:64c::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
2002:a9fe:a9fe:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd12::1 fe80::1 febf::1 fec0::1 feff::1
ff02::1 ff0e::1 4000::1 8000::1 2606:4700::5efe:7f00:1 2606:4700::200:5efe:7f00:1 fe80::1%eth0
2606:4700::1%1
""")
ALLOWED = words("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1
169.253.0.1 169.255.0.1 172.15.255.255 172.32.0.1 192.0.1.1 192.167.255.255 192.169.0.1
198.17.255.255 198.20.0.1 223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888
2a00:1450:4001::1 2001:200::1 2003::1 3ffe::1
""")


@pytest.mark.parametrize("text", REFUSED)
def test_special_addresses_are_refused(text: str) -> None:
    """Every block that is not ordinary unicast, and every IPv4 address inside an IPv6 one."""
    assert PUBLIC.refusal_of(text)


@pytest.mark.parametrize("text", ALLOWED)
def test_ordinary_addresses_are_allowed(text: str) -> None:
    """The neighbours of the refused blocks among them."""
    assert PUBLIC.refusal_of(text) is None


@pytest.mark.parametrize(
    "text", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.01", "", "a", "1.2.3.4.5"]
)
def test_only_the_canonical_form_is_an_address(text: str) -> None:
    """Everything else is nothing, and nothing may be called."""
    assert read_address(text) is None
    assert PUBLIC.refusal_of(text) == "not an address"


def test_loopback_is_allowed_only_when_asked_for() -> None:
    """And then in its plain forms only."""
    dev = AddressPolicy(loopback=True)
    assert [dev.refusal_of(text) for text in ("127.0.0.1", "127.9.9.9", "::1")] == [None] * 3
    for disguised in ("::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "0.1.1.1", "::"):
        assert dev.refusal_of(disguised)
    assert dev.refusal_of("10.0.0.1") == "private"


def test_an_allow_list_opens_private_ranges_but_never_metadata() -> None:
    """The operator may open the whole of a range without opening the one address that matters."""
    policy = AddressPolicy(allowed=(ip_network("10.1.0.0/16"), ip_network("169.254.0.0/16")))
    assert policy.refusal_of("10.1.2.3") is None
    assert policy.refusal_of("10.2.0.1") == "private"
    assert policy.refusal_of("169.254.7.7") is None
    assert policy.refusal_of("169.254.169.254") == "a metadata service"
    everything = AddressPolicy(allowed=(ip_network("0.0.0.0/0"), ip_network("::/0")))
    for text in ("169.254.169.254", "0.1.1.1", "224.0.0.1", "255.255.255.255", "fd00:ec2::254"):
        assert everything.refusal_of(text)


def test_our_own_addresses_are_refused() -> None:
    """Also when they are public."""
    policy = AddressPolicy(own=frozenset({ip_address("8.8.4.4")}))
    assert policy.refusal_of("8.8.4.4") == "an address of this machine"
    assert policy.refusal_of("8.8.8.8") is None
