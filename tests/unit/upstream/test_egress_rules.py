"""Guard for URLs that callers name: the hosts, addresses, ports and schemes that it refuses, and its exemptions."""

import socket
from dataclasses import dataclass
from ipaddress import ip_address

import pytest

from tests.support.refused_urls import NAMES, PUBLIC_V4, PUBLIC_V6, REFUSED_URLS, RefusedUrl, resolve
from umg_grpc.base.egress_rules import EgressRules, check_addresses, check_url, is_public
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.host_list_entries import NetworkPlace, parse_place
from umg_grpc.upstream.caller_url_fetch import REFUSED_OUTCOME, Fetcher
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb


class UnusedClient(Client):
    """Client by which no request may be sent."""

    async def open(self, call: OutgoingRequest) -> ProviderExchange:
        raise AssertionError(f"a connection to {call.url} would be made")


USUAL = EgressRules()


def rules(*allow: str, http: bool = False) -> EgressRules:
    return EgressRules(tuple(parse_place(text) for text in allow), http=http)


@pytest.fixture
async def outcomes() -> list[str]:
    return []


@pytest.fixture
async def fetcher(outcomes: list[str]) -> Fetcher:
    return Fetcher(UnusedClient(), EgressRules(), lookup=resolve, count=outcomes.append)


def test_the_table_has_at_least_a_hundred_urls() -> None:
    assert len({case.url for case in REFUSED_URLS}) == len(REFUSED_URLS) >= 100


@pytest.mark.parametrize("case", REFUSED_URLS, ids=lambda case: case.id)
async def test_a_url_is_refused_before_a_connection_is_made(
    case: RefusedUrl, fetcher: Fetcher, outcomes: list[str]
) -> None:
    with pytest.raises(UmgError) as caught:
        await fetcher.fetch(case.url, field="input.image")
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "input.image"})
    assert caught.value.message.startswith("`input.image`: the URL ")
    assert caught.value.failure is None  # no other channel is tried
    assert outcomes == [REFUSED_OUTCOME]
    for addresses in NAMES.values():
        assert not any(address in caught.value.message for address in addresses)
    with pytest.raises(UmgError):
        await fetcher.post(case.url, field="callback_url", body=b"{}", headers={})
    with pytest.raises(UmgError):
        async with fetcher.open(case.url, field="image"):
            pass


async def test_a_url_is_refused_at_once_as_far_as_its_text_shows(fetcher: Fetcher, outcomes: list[str]) -> None:
    for case in REFUSED_URLS:
        if not case.id.startswith("name:"):
            with pytest.raises(UmgError):
                fetcher.check(case.url, field="callback_url")
    fetcher.check("https://public.example.com/x", field="callback_url")
    assert outcomes == []


async def test_a_url_in_a_providers_answer_is_the_providers_fault(fetcher: Fetcher) -> None:
    with pytest.raises(UmgError) as caught:
        await fetcher.fetch("https://127.0.0.1/x", field=None)
    assert (caught.value.name, caught.value.failure) == ("UPSTREAM_FAILED", Failure.AMBIGUOUS)


@dataclass(frozen=True)
class Allowed:
    id: str
    url: str
    sent: str = ""  # URL of the request, if not the same
    rules: EgressRules = USUAL
    addresses: tuple[str, ...] = (PUBLIC_V4,)


ALLOWED = [
    Allowed("a public name", "https://public.example.com/x.png?a=%2F&b=c%20d"),
    Allowed("no path", "https://public.example.com", "https://public.example.com/"),
    Allowed("only a query", "https://public.example.com?x=1", "https://public.example.com/?x=1"),
    Allowed("a fragment", "https://public.example.com/x#y", "https://public.example.com/x"),
    Allowed("capitals", "HTTPS://Public.Example.COM/X", "https://public.example.com/X"),
    Allowed("a trailing dot", "https://public.example.com./x", "https://public.example.com/x"),
    Allowed("its own port", "https://public.example.com:443/x", "https://public.example.com/x"),
    Allowed("an @ in the path", "https://public.example.com/@a:b"),
    Allowed("an international name", "https://bücher.example.com/ü", "https://xn--bcher-kva.example.com/ü"),
    Allowed("an underscore", "https://my_bucket.s3.example.com/x"),
    Allowed("an address", f"https://{PUBLIC_V4}/x"),
    Allowed("an IPv6 address", f"https://[{PUBLIC_V6.upper()}]/x", f"https://[{PUBLIC_V6}]/x", addresses=(PUBLIC_V6,)),
    Allowed("http where it is allowed", "http://public.example.com/x", rules=rules(http=True)),
    Allowed("an allowed host", "http://minio:9000/x", rules=rules("minio"), addresses=("10.0.0.7",)),
    Allowed("an allowed host on its port", "http://minio:9000/x", rules=rules("minio:9000"), addresses=("10.0.0.7",)),
    Allowed("below an allowed domain", "https://a.b.corp/x", rules=rules("*.corp"), addresses=("10.0.0.7",)),
    Allowed("an allowed address", "http://127.0.0.1:8080/x", rules=rules("127.0.0.1"), addresses=("127.0.0.1",)),
    Allowed("in an allowed network", "http://10.1.2.3:8080/x", rules=rules("10.0.0.0/8"), addresses=("10.1.2.3",)),
    Allowed("in an allowed IPv6 network", "http://[fd00::1]:81/", rules=rules("[fd00::/8]:81"), addresses=("fd00::1",)),
    Allowed("a name in an allowed network", "http://nas.lan:81/", rules=rules("10.0.0.0/8:81"), addresses=("10.9.9.9",)),
    Allowed("a public address beside a network", "https://public.example.com/x", rules=rules("10.0.0.0/8")),
]  # fmt: skip


@pytest.mark.parametrize("case", ALLOWED, ids=lambda case: case.id)
def test_a_url_is_called_as_it_was_given(case: Allowed) -> None:
    target = check_url(case.url, case.rules, "image")
    check_addresses(target, [ip_address(address) for address in case.addresses], case.rules, "image")
    assert target.url == (case.sent or case.url)


REFUSED_WITH_RULES = [
    Allowed("another port of an allowed host", "http://minio:9001/x", rules=rules("minio:9000")),
    Allowed("the domain itself", "https://corp/x", rules=rules("*.corp")),
    Allowed("a host that ends as an allowed one", "https://evilcorp/x", rules=rules("*.corp")),
    Allowed("outside of an allowed network", "https://11.0.0.1:8080/x", rules=rules("10.0.0.0/8")),
    Allowed("another port of a network", "http://10.1.2.3:80/x", rules=rules("10.0.0.0/8:8080"), addresses=("10.1.2.3",)),
    Allowed("one address outside", "http://nas.lan/x", rules=rules("10.0.0.0/8"), addresses=("10.0.0.1", "11.0.0.1")),
    Allowed("one private address", "https://a.example.com/", rules=rules("10.0.0.0/8"), addresses=("10.0.0.1", "127.0.0.1")),
    Allowed("mapped into a network", "http://[::ffff:10.0.0.1]/", rules=rules("10.0.0.0/8"), addresses=("::ffff:10.0.0.1",)),
    Allowed("an unusual form of an allowed one", "http://0x7f.0.0.1/x", rules=rules("127.0.0.1")),
    Allowed("credentials for an allowed host", "https://a:b@minio/x", rules=rules("minio")),
    Allowed("another scheme of an allowed host", "ftp://minio/x", rules=rules("minio")),
    Allowed("http on another port", "http://public.example.com:8080/x", rules=rules(http=True)),
    Allowed("http at a private address", "http://public.example.com/x", rules=rules(http=True), addresses=("10.0.0.1",)),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_WITH_RULES, ids=lambda case: case.id)
def test_an_exemption_has_its_limits(case: Allowed) -> None:
    with pytest.raises(UmgError):
        check_addresses(
            check_url(case.url, case.rules, "image"),
            [ip_address(address) for address in case.addresses],
            case.rules,
            "image",
        )


def test_an_address_outside_of_all_allowed_networks_is_refused_before_it_is_called() -> None:
    with pytest.raises(UmgError, match="not on the public internet"):
        check_url("http://169.254.169.254/x", rules("127.0.0.1", http=True), "callback_url")


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "223.255.255.254", "2001:200::1", "2a00:1450:4001::1", "2400:cb00::1"])  # fmt: skip
def test_an_address_outside_the_refused_ranges_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def test_a_refusal_is_explained_in_the_log_alone() -> None:
    target = check_url("https://to-private.example.com/x", EgressRules(), "image")
    with pytest.raises(UmgError) as caught:
        check_addresses(target, [ip_address("10.0.0.7")], EgressRules(), "image")
    assert caught.value.cause == "to-private.example.com has the address 10.0.0.7"
    assert "10.0.0.7" not in f"{caught.value.message}{caught.value.metadata}"


PLACES = [
    ("minio", NetworkPlace("minio")),
    ("Files.Example.com:8443", NetworkPlace("files.example.com", port=8443)),
    ("*.example.com", NetworkPlace(".example.com")),
    ("bücher.example", NetworkPlace("xn--bcher-kva.example")),
    ("10.0.0.5:80", parse_place("10.0.0.5/32:80")),
    ("::1", parse_place("[::1]")),
    ("fd00::/8", parse_place("[fd00::/8]")),
]


@pytest.mark.parametrize(("text", "place"), PLACES)
def test_an_entry_of_the_allow_list_is_read(text: str, place: NetworkPlace) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "*", "*.", "https://a.example", "a b", "a:0", "a:99999", "a:b", "10.0.0.1/8", "10.0.0/24", "0x7f.1", "[::1", "[a]", "a*.b", "a/b", "fe80::1%eth0/64"])  # fmt: skip
def test_an_invalid_entry_of_the_allow_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_place(text)


def test_the_system_itself_would_resolve_the_unusual_spellings() -> None:
    """Show that the table matters: the resolver of the system accepts these forms of loopback addresses."""
    for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1"):
        assert socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)[0][4][0] == "127.0.0.1"
