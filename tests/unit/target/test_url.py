"""Reading addresses of targets."""

from ipaddress import ip_network

import pytest

from betimes.domain.errors import BadTarget
from betimes.target.address import AddressPolicy
from betimes.target.url import PortRange, UrlPolicy, read_url

STRICT = UrlPolicy()
PLAIN = UrlPolicy(plain_http=True)
DEV = UrlPolicy(addresses=AddressPolicy(loopback=True))


@pytest.mark.parametrize(
    ("text", "read", "origin"),
    [
        ("https://example.com", "https://example.com/", "https://example.com"),
        ("HTTPS://Example.COM:443/a?b=c", "https://example.com/a?b=c", "https://example.com"),
        ("https://example.com.:8443/", "https://example.com:8443/", "https://example.com:8443"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC", None),
        ("https://example.com?x=1", "https://example.com/?x=1", "https://example.com"),
        ("https://cafe.de/%2e%2e/", "https://cafe.de/%2e%2e/", "https://cafe.de"),
        ("https://1.1.1.1/x", "https://1.1.1.1/x", "https://1.1.1.1"),
        ("https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/", None),
        ("https://a_b.example.com/", "https://a_b.example.com/", None),
        ("https://123.example.com/", "https://123.example.com/", None),
    ],
)
def test_good_addresses_have_one_form(text: str, read: str, origin: str | None) -> None:
    """Lower case, default port left out, path encoded."""
    url = read_url(text, STRICT)
    assert str(url) == read
    assert origin in (None, url.origin)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("http://example.com/", "plain http"),
        ("ftp://example.com/", "http or https"),
        ("file:///etc/passwd", "http or https"),
        ("https:example.com", "such as"),
        ("//example.com", "such as"),
        ("https://user@example.com/", "user name"),
        ("https://user:secret@example.com/", "user name"),
        ("https://example.com#@evil.com/", "fragment"),
        ("https://example.com\\@evil.com/", "backslashes"),
        ("https://exa mple.com/", "blanks"),
        ("https://example.com/\r\nHost: evil", "blanks"),
        ("https://exa\tmple.com/", "blanks"),
        ("https://example.com/\ud800", "blanks"),
        ("https://%65xample.com/", "percent"),
        ("https://[::1", "brackets"),
        ("https://[fe80::1%25eth0]/", "percent"),
        ("https://[127.0.0.1]/", "brackets"),
        ("https://example.com:0/", "port"),
        ("https://example.com:99999/", "port"),
        ("https://example.com:+80/", "port number"),
        ("https://example.com:22/", "allowed ports"),
        ("https://example.com:5432/", "allowed ports"),
        ("https://127.1/", "four decimal numbers"),
        ("https://2130706433/", "four decimal numbers"),
        ("https://0x7f000001/", "four decimal numbers"),
        ("https://0177.0.0.1/", "four decimal numbers"),
        ("https://0x7f.1/", "four decimal numbers"),
        ("https://example.0x/", "four decimal numbers"),
        ("https://①②⑦.⓪.⓪.①/", "public address"),
        ("https://169。254。169。254/", "public address"),
        ("https://127.0.0.1./", "public address"),
        ("https://10.0.0.1/", "public address"),
        ("https://[::ffff:10.0.0.1]/", "public address"),
        ("https://localhost/", "public name"),
        ("https://LOCALHOST./", "public name"),
        ("https://app.localhost/", "public name"),
        ("https://metadata.google.internal/", "public name"),
        ("https://metadata/", "public name"),
        ("https://printer.local/", "public name"),
        ("https://-a.example.com/", "host name"),
        ("https://a..example.com/", "host name"),
        ("https:///x", "host"),
        ("https://" + "a" * 64 + ".example.com/", "host name"),
        ("https://" + "a." * 127 + "com/", "host"),
        ("https://example.com/" + "a" * 9000, "characters"),
    ],
)
def test_doubtful_addresses_are_refused_with_a_reason(text: str, sentence: str) -> None:
    """The pointer says where, the sentence what was expected."""
    with pytest.raises(BadTarget, match=sentence) as refused:
        read_url(text, STRICT)
    assert refused.value.pointer == "/target/url"
    assert refused.value.code == "url_not_allowed"


def test_plain_http_can_be_allowed() -> None:
    """And nothing else with it."""
    assert read_url("http://example.com/", PLAIN).port == 80
    with pytest.raises(BadTarget, match="expected a public address"):
        read_url("http://127.0.0.1/", PLAIN)


def test_development_may_call_this_machine_on_any_port() -> None:
    """Loopback with plain http; the rest of the rules stay."""
    for text in ("http://127.0.0.1:34567/", "http://localhost:1/", "http://[::1]:5000/x"):
        assert read_url(text, DEV).port
    with pytest.raises(BadTarget, match="plain http"):
        read_url("http://example.com/", DEV)
    with pytest.raises(BadTarget, match="expected a public address"):
        read_url("https://10.0.0.1/", DEV)


def test_a_tenant_may_be_given_private_names_and_ranges() -> None:
    """By name and by range, each alone."""
    policy = UrlPolicy(
        addresses=AddressPolicy(allowed=(ip_network("10.1.0.0/16"),)),
        names=frozenset({"hooks.internal"}),
        ports=(PortRange(443, 443),),
    )
    assert read_url("https://hooks.internal/", policy).port
    assert read_url("https://10.1.2.3/", policy).port
    with pytest.raises(BadTarget, match="public name"):
        read_url("https://other.internal/", policy)
    with pytest.raises(BadTarget, match="allowed ports"):
        read_url("https://hooks.internal:8443/", policy)
