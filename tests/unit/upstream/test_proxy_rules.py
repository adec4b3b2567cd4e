"""Proxies from environment variables, by the rules that HTTP clients share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment

import pytest
from requests.utils import should_bypass_proxies

from umg_grpc.base.proxy_rules import NO_PROXIES, ProxyError, environment_proxies

PROXY, OTHER = "http://proxy.example:3128", "http://other.example:8888"


@dataclass(frozen=True)
class Chosen:
    id: str
    environment: Mapping[str, str]
    proxy: str | None
    source: str = ""
    url: str = "https://api.vendor.example/v1"


PLAIN = "http://api.vendor.example/v1"
CHOSEN = [
    Chosen("nothing is set", {}, None),
    Chosen("the variable of the scheme", {"HTTPS_PROXY": PROXY, "HTTP_PROXY": OTHER}, PROXY, "HTTPS_PROXY"),
    Chosen("a URL without TLS", {"HTTPS_PROXY": PROXY, "HTTP_PROXY": OTHER}, OTHER, "HTTP_PROXY", PLAIN),
    Chosen("only that of the other scheme", {"HTTP_PROXY": OTHER}, None),
    Chosen("that of all schemes", {"ALL_PROXY": PROXY}, PROXY, "ALL_PROXY"),
    Chosen("that of all schemes in lower case", {"all_proxy": PROXY}, PROXY, "all_proxy", PLAIN),
    Chosen("its own before that of all", {"HTTPS_PROXY": PROXY, "ALL_PROXY": OTHER}, PROXY, "HTTPS_PROXY"),
    Chosen("lower case first", {"HTTPS_PROXY": OTHER, "https_proxy": PROXY}, PROXY, "https_proxy"),
    Chosen("an empty one in lower case", {"HTTPS_PROXY": OTHER, "https_proxy": ""}, None),
    Chosen("an empty one", {"HTTPS_PROXY": ""}, None),
    Chosen("no scheme", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY, "HTTPS_PROXY"),
    Chosen("a slash at the end", {"HTTPS_PROXY": f"{PROXY}/"}, PROXY, "HTTPS_PROXY"),
    Chosen("a proxy over TLS", {"HTTPS_PROXY": "https://proxy.example"}, "https://proxy.example", "HTTPS_PROXY"),
    Chosen("a CGI script", {"REQUEST_METHOD": "GET", "HTTP_PROXY": OTHER}, None, url=PLAIN),
    Chosen(
        "lower case in a CGI script", {"REQUEST_METHOD": "GET", "http_proxy": OTHER}, OTHER, "http_proxy", url=PLAIN
    ),
    Chosen("the scheme of one that is not used", {"ALL_PROXY": "socks5://a", "HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY},
           PROXY, "HTTPS_PROXY"),
]  # fmt: skip


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_a_url_has_the_proxy_of_its_scheme(case: Chosen) -> None:
    found = environment_proxies(case.environment).of_url(case.url)
    assert (None if found is None else found.url, "" if found is None else found.source) == (case.proxy, case.source)


@dataclass(frozen=True)
class Direct:
    id: str
    value: str
    url: str
    is_direct: bool = True
    unlike: frozenset[str] = field(default_factory=frozenset)
    """Libraries that decide otherwise; no two of them agree on all of these cases."""


def unlike(*names: str) -> frozenset[str]:
    return frozenset(names)


HOST = "https://api.vendor.example/v1"
DIRECT = [
    Direct("the host", "api.vendor.example", HOST),
    Direct("the host in another case", "API.Vendor.Example", HOST),
    Direct("another host", "api.other.example", HOST, is_direct=False),
    Direct("its domain", "vendor.example", HOST),
    Direct("its domain with a dot", ".vendor.example", HOST),
    Direct("its domain with a star", "*.vendor.example", HOST, unlike=unlike("urllib", "requests")),
    Direct("the host behind a dot", ".api.vendor.example", HOST),
    Direct("the end of a label", "endor.example", HOST, is_direct=False),
    Direct("a longer name", "x.api.vendor.example", HOST, is_direct=False),
    Direct("in a list", "localhost,10.0.0.0/8, vendor.example ,other", HOST),
    Direct("in a list with spaces", "localhost vendor.example", HOST, unlike=unlike("urllib", "requests")),
    Direct("every place", "*", HOST),
    Direct("every place in a list", "localhost,*", HOST, unlike=unlike("urllib", "requests")),
    Direct("no entry", " , ", HOST, is_direct=False),
    Direct("the port of the URL", "api.vendor.example:8443", "https://api.vendor.example:8443/v1"),
    Direct("another port", "api.vendor.example:9443", "https://api.vendor.example:8443/v1", is_direct=False),
    Direct("the port of the scheme", "vendor.example:443", HOST, unlike=unlike("urllib", "requests")),
    Direct("a domain at a port", "vendor.example:8443", "https://api.vendor.example:8443/v1"),
    Direct("an address", "203.0.113.7", "https://203.0.113.7/v1"),
    Direct("another address", "203.0.113.7", "https://203.0.113.77/v1", is_direct=False),
    Direct("an address with a port", "203.0.113.7:8443", "https://203.0.113.7:8443/v1", unlike=unlike("requests")),
    Direct("a network", "203.0.113.0/24", "https://203.0.113.7/v1", unlike=unlike("urllib")),
    Direct("a network by one of its addresses", "203.0.113.9/24", "https://203.0.113.7/v1", unlike=unlike("urllib")),
    Direct("a network at a port", "203.0.113.0/24:8443", "https://203.0.113.7:8443/v1", unlike=unlike("urllib", "requests")),
    Direct("a network at another port", "203.0.113.0/24:8443", "https://203.0.113.7/v1", is_direct=False),
    Direct("an IPv6 network at a port", "[2001:db8::/32]:8443", "https://[2001:db8::7]:8443/v1", unlike=unlike("urllib", "requests")),
    Direct("an IPv4 address in one of IPv6", "203.0.113.0/24", "https://[::ffff:203.0.113.7]/v1", unlike=unlike("urllib", "requests")),
    Direct("another network", "203.0.112.0/24", "https://203.0.113.7/v1", is_direct=False),
    Direct("an IPv6 address", "2001:db8::7", "https://[2001:db8::7]/v1", unlike=unlike("urllib")),
    Direct("an IPv6 address in brackets", "[2001:db8::7]", "https://[2001:db8::7]/v1", unlike=unlike("requests")),
    Direct(
        "an IPv6 network", "2001:db8::/32", "https://[2001:db8::7]:8443/v1", unlike=unlike("urllib", "requests")
    ),
    Direct("what is no place", "http://,::::,a..b,/24,[", HOST, is_direct=False),
    Direct("a name with a dot at its end", "vendor.example", "https://api.vendor.example./v1",
           unlike=unlike("urllib", "requests")),
]  # fmt: skip


@pytest.mark.parametrize("case", DIRECT, ids=lambda case: case.id)
def test_places_of_no_proxy_are_called_directly(case: Direct) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        rules = environment_proxies({"HTTPS_PROXY": PROXY, variable: case.value})
        assert (rules.of_url(case.url) is None) is case.is_direct


@pytest.mark.parametrize("case", DIRECT, ids=lambda case: case.id)
def test_other_libraries_decide_as_the_gateway(case: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    answers = {
        "urllib": bool(proxy_bypass_environment(urlsplit(case.url).netloc, {"no": case.value})),
        "requests": should_bypass_proxies(case.url, no_proxy=case.value),
    }
    assert {name for name, is_direct in answers.items() if is_direct is not case.is_direct} == case.unlike


LOOPBACK = [
    "http://localhost:8000/v1",
    "https://LOCALHOST/v1",
    "http://api.localhost/v1",
    "http://127.0.0.1:8000/v1",
    "http://127.8.9.1/v1",
    "http://[::1]:8000/v1",
    "http://[::ffff:127.0.0.1]:8000/v1",
    "http://0.0.0.0:8000/v1",
]


@pytest.mark.parametrize("url", LOOPBACK)
def test_this_machine_never_has_a_proxy(url: str) -> None:
    rules = environment_proxies({"ALL_PROXY": PROXY})
    assert rules.of_url(url) is None
    assert rules.of_url("http://127.example/v1") is not None


UNUSABLE = [
    ("socks5://proxy.example:1080", "HTTPS_PROXY"),
    ("http://", "http_proxy"),
    ("http://proxy.example:0", "HTTP_PROXY"),
    ("http://proxy.example:99999", "HTTP_PROXY"),
    ("http://secret@proxy.example/path", "ALL_PROXY"),
    ("http://proxy.example?x=1", "https_proxy"),
    ("http://pro xy.example", "HTTPS_PROXY"),
    ("http://[::1", "HTTPS_PROXY"),
]


@pytest.mark.parametrize(("value", "variable"), UNUSABLE)
def test_a_variable_without_the_url_of_a_proxy_is_named(value: str, variable: str) -> None:
    with pytest.raises(ProxyError, match=f"environment variable {variable} to be the URL of an HTTP proxy") as caught:
        environment_proxies({variable: value})
    assert "secret" not in str(caught.value)
    assert environment_proxies({variable: value, "NO_PROXY": "*"}).of_url(HOST) is None


def test_a_proxy_is_shown_without_its_credentials() -> None:
    found = environment_proxies({"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"}).of_url(HOST)
    assert found is not None
    assert found.shown == PROXY
    assert "p%40ss" not in repr(found)


def test_a_configured_proxy_keeps_the_direct_places() -> None:
    rules = environment_proxies({"NO_PROXY": "vendor.example"}).with_proxy(OTHER, "egress.proxy")
    assert rules.of_url(HOST) is None
    found = rules.of_url("http://files.example/a.png")
    assert found is not None
    assert (found.url, found.source) == (OTHER, "egress.proxy")
    assert NO_PROXIES.of_url(HOST) is None
