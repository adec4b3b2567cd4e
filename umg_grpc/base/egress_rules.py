"""Egress rules: the hosts, addresses and ports that the gateway may connect to for a URL that a caller sends.

A URL is parsed strictly and once; `CheckedUrl.url` is built from the checked parts, so that no other parser can find
another host in it. Nothing here does I/O: `umg_grpc/upstream/caller_url_fetch.py` resolves names and connects.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.host_list_entries import ADDRESS_NUMBER, DEFAULT_PORTS, IpAddress, NetworkPlace, ascii_host
from umg_grpc.base.proxy_rules import NO_PROXIES, ProxyRules
from umg_grpc.v1 import pb

MAX_URL_CHARACTERS = 8192

REFUSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; metadata of one cloud
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the host of one cloud's virtual machines, although its address is a public one
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
"""Special-purpose addresses (IANA registry), and those of cloud metadata."""

GLOBAL_V6 = IPv6Network("2000::/3")
"""All global unicast addresses. It contains no loopback, unique local, link-local or multicast address, and none that
is mapped or translated to an IPv4 address (`::ffff:0:0/96`, `64:ff9b::/96`, `64:ff9b:1::/48`).
"""
REFUSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which contains an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
ISATAP_BITS = frozenset({0x00005EFE, 0x02005EFE})
"""Bits 64 to 95 of an address whose last 32 bits are an IPv4 address to which a router may tunnel."""

LOCAL_SUFFIXES = (
    *("localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa"),
    *("onion", "test", "invalid"),
)
"""Domains that are no part of the public DNS."""

URL_FORM = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?")
FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff]")
IPV6_AUTHORITY = re.compile(r"\[(?P<host>[0-9A-Fa-f:.]+)\](?::(?P<port>[0-9]{1,5}))?")
NAME_AUTHORITY = re.compile(r"(?P<host>[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")

NOT_PUBLIC = "names a host that is not on the public internet"


@dataclass(frozen=True)
class EgressRules:
    """Operator's rules for URLs that callers send: the allow list, permitted schemes, and size and time limits."""

    allow: tuple[NetworkPlace, ...] = ()
    """Places that are exempt from the rules of addresses, ports and schemes."""
    http: bool = False
    """Whether `http` on port 80 is allowed besides `https` on port 443."""
    max_bytes: int = 64 * 1024**2
    """Largest file that is fetched whole."""
    timeout: float = 30.0
    """Seconds of a whole fetch with its redirects, and of each wait for a part of a larger file."""
    proxies: ProxyRules = field(default=NO_PROXIES, repr=False)
    """Proxies of these URLs, which resolve the names themselves; none unless the operator names one."""


@dataclass(frozen=True)
class CheckedUrl:
    """Checked URL of a caller. The addresses of a host name must pass `check_addresses` before a connection."""

    url: str
    """The URL, from the checked parts, without a fragment."""
    scheme: str
    host: str
    port: int
    address: IpAddress | None
    """Address that the URL has instead of a name."""
    is_exempt: bool
    """Whether the allow list has the host, so that any address is allowed."""
    objection: str
    """Reason why only addresses in an allowed network may be called; empty if public addresses may be called too."""
    lookup_name: str


def check_url(url: str, rules: EgressRules, field: str | None) -> CheckedUrl:
    """Check a URL by the rules. Raise UrlRefusedError. `field`: the caller's field; None in a provider's response."""
    if len(url) > MAX_URL_CHARACTERS:
        raise refused(field, f"is longer than {MAX_URL_CHARACTERS} characters")
    if FORBIDDEN_CHARACTERS.search(url):
        raise refused(field, "has spaces, control characters or backslashes in it; encode them")
    form = URL_FORM.fullmatch(url)
    if form is None:
        raise refused(field, "is not an absolute https URL with a host")
    scheme = form["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise refused(field, "has a scheme that is not fetched; use https")
    host, address, port = _authority(form["authority"], field)
    port = DEFAULT_PORTS[scheme] if port is None else port
    is_exempt = any(place.has_host(host, port) for place in rules.allow)
    objection = "" if is_exempt else _objection(scheme, host, port, address, rules)
    networks = [place for place in rules.allow if place.network is not None]
    if objection and not any(_may_exempt(place, address, port) for place in networks):
        raise refused(field, objection)
    written = f"[{host}]" if isinstance(address, IPv6Address) else host
    rest = form["rest"] if form["rest"].startswith("/") else f"/{form['rest']}"
    return CheckedUrl(
        url=f"{scheme}://{written}{'' if port == DEFAULT_PORTS[scheme] else f':{port}'}{rest}",
        scheme=scheme,
        host=host,
        port=port,
        address=address,
        is_exempt=is_exempt,
        objection=objection,
        # the dot excludes the search domains of the system, which are the operator's own
        lookup_name=host if is_exempt or networks else f"{host}.",
    )


def _may_exempt(network: NetworkPlace, address: IpAddress | None, port: int) -> bool:
    return network.port in {None, port} if address is None else network.has_address(address, port)


def check_addresses(target: CheckedUrl, addresses: "list[IpAddress]", rules: EgressRules, field: str | None) -> None:
    """Check all resolved addresses of a target. Raise UrlRefusedError; the forbidden address is in its `cause`, for the
    log. `field`: the caller's field with the URL; None for a URL in a provider's response.
    """
    if target.is_exempt:
        return
    for address in addresses:
        if any(place.has_address(address, target.port) for place in rules.allow):
            continue
        if target.objection or not is_public(address):
            error = refused(field, target.objection or NOT_PUBLIC)
            error.cause = f"{target.host} has the address {address}"
            raise error


def is_public(address: IpAddress) -> bool:
    """Return whether an address is on the public internet; False for IPv6 that embeds IPv4 addresses (NAT64)."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in REFUSED_V4)
    is_isatap = (int(address) >> 32) & 0xFFFFFFFF in ISATAP_BITS
    return address in GLOBAL_V6 and not is_isatap and not any(address in network for network in REFUSED_V6)


class UrlRefusedError(UmgError):
    """Error for a URL that the egress rules forbid."""

    why = ""
    """Statement about the URL, for messages: "has no valid host"."""


def refused(field: str | None, why: str) -> UrlRefusedError:
    """Return the error for a URL that the gateway does not call because of `why`. It is INVALID_FIELD for the caller's
    field; UPSTREAM_FAILED for a URL in a provider's response (`field` is None).
    """
    if field is None:
        error = UrlRefusedError(
            pb.ERROR_REASON_UPSTREAM_FAILED, f"the provider's result could not be fetched: its URL {why}"
        )
        error.failure = Failure.AMBIGUOUS
    else:
        error = UrlRefusedError(pb.ERROR_REASON_INVALID_FIELD, f"`{field}`: the URL {why}", field=field)
    error.why = why
    return error


def _authority(authority: str, field: str | None) -> tuple[str, IpAddress | None, int | None]:
    """Parse the part of a URL with host and port. Return host name, address (None for a name) and port."""
    if "@" in authority:
        raise refused(field, "has a user name or a password, which is not sent; leave it out")
    v6 = IPV6_AUTHORITY.fullmatch(authority)
    parts = v6 or NAME_AUTHORITY.fullmatch(authority)
    if parts is None or "%" in authority:
        raise refused(field, "has no valid host")
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and not 1 <= port <= 65535:
        raise refused(field, "has no valid port")
    try:
        if v6 is not None:
            address = IPv6Address(v6["host"])
            return str(address), address, port
        host = ascii_host(parts["host"].removesuffix("."))
    except ValueError:
        raise refused(field, "has no valid host") from None
    if not ADDRESS_NUMBER.fullmatch(host.rpartition(".")[2]):
        return host, None, port
    try:
        return host, IPv4Address(host), port
    except ValueError:
        raise refused(field, "has an address in an unusual form; write it as four decimal numbers") from None


def _objection(scheme: str, host: str, port: int, address: IpAddress | None, rules: EgressRules) -> str:
    """Return why the rules forbid to call a host whose address is public; "" if they permit it."""
    if scheme == "http" and not rules.http:
        return "has the scheme http; use https"
    if port != DEFAULT_PORTS[scheme]:
        return f"has the port {port}; only {DEFAULT_PORTS[scheme]} is called for {scheme}"
    if address is None and ("." not in host or any(f".{host}".endswith(f".{suffix}") for suffix in LOCAL_SUFFIXES)):
        return NOT_PUBLIC
    return "" if address is None or is_public(address) else NOT_PUBLIC
