"""URLs of targets, from pieces that have fooled readers before."""

from urllib.parse import urlsplit

from hypothesis import example, given
from hypothesis import strategies as some

from betimes.domain.errors import BadTarget
from betimes.target.address import AddressPolicy, read_address
from betimes.target.url import PortRange, UrlPolicy, read_url

OPEN = UrlPolicy(plain_http=True, ports=(PortRange(1, 65_535),))
PIECES = some.sampled_from(
    [
        *(
            "http",
            "https",
            "HTTP",
            "ftp",
            "://",
            ":",
            "/",
            "//",
            "\\",
            "@",
            "#",
            "?",
            "%",
            "[",
            "]",
        ),
        *("a", "b.c", "example.com", "localhost", "127.0.0.1", "0x7f", "0177", "1", ".", "..", "-"),
        *("::1", "::ffff:1.2.3.4", "fe80::1%25eth0", "8.8.8.8", "80", "443", "99999", "\t", "\n"),
        *("\x00", " ", "ß", "。", "①", "xn--", "%31", "%2e", "。com", "user:pw", "&", ";", "é"),
    ]
)
TEXTS = some.lists(PIECES, max_size=8).map("".join)
URLS = some.builds("{}{}".format, some.sampled_from(["http://", "https://"]), TEXTS)


@given(TEXTS | URLS | some.text(some.characters()))
@example("http://a@b")
@example("http://8.8.8.8#@127.0.0.1/")
@example("http://1.1.1.1%2f@8.8.8.8/")
@example("http://ⓔxample.com/")
def test_whatever_passes_has_one_reading(text: str) -> None:
    """Ours and the library's, now and when it is read again; never an address that is refused."""
    try:
        url = read_url(text, OPEN)
    except BadTarget:
        return
    shown = str(url)
    assert shown.isascii()
    assert read_url(shown, OPEN) == url
    parts = urlsplit(shown)
    assert (parts.scheme, parts.hostname, parts.port or url.port) == (
        url.scheme,
        url.host,
        url.port,
    )
    assert parts.username is None
    assert parts.fragment == ""
    assert read_address(url.host) == url.address
    if url.address is not None:
        assert AddressPolicy().refusal(url.address) is None
