"""HTTP proxies of outgoing calls, and the hosts that are called without one. The rules are those of the environment
variables that HTTP clients share: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Loopback addresses never
have a proxy.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from umg_grpc.base.host_list_entries import DEFAULT_PORTS, IpAddress, NetworkPlace, parse_place

HTTPS_VARIABLE, HTTP_VARIABLE, ALL_VARIABLE, NONE_VARIABLE = "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"
CGI_VARIABLE = "REQUEST_METHOD"
"""Variable of CGI scripts, whose `HTTP_PROXY` is the header `Proxy` of their caller."""
ENTRY_SEPARATORS = re.compile(r"[,\s]+")
NETWORK_FORM = re.compile(r"\[?(?P<network>[^\[\]/]+/[0-9]+)\]?(?::(?P<port>[0-9]{1,5}))?")
"""Network in `NO_PROXY`, one of IPv6 optionally in brackets, with an optional port."""
PRINTABLE_TEXT = re.compile(r"[!-~]+")
EXPECTED_RULES = (
    "the URL of an HTTP proxy, http://HOST:PORT or https://HOST:PORT, with special characters of its password as %XX; "
    "SOCKS is not supported"
)


@dataclass(frozen=True)
class Proxy:
    """HTTP proxy, and the setting or environment variable that names it."""

    url: str = field(repr=False)
    """URL, optionally with credentials."""
    source: str

    @property
    def shown(self) -> str:
        """URL of the proxy without credentials."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class ProxyError(ValueError):
    """Error for an environment variable that is not the URL of an HTTP proxy. Its text never contains the value."""

    def __init__(self, variable: str) -> None:
        super().__init__(f"expected the environment variable {variable} to be {EXPECTED_RULES}")


@dataclass(frozen=True)
class ProxyRules:
    """Proxies by the scheme of a URL, and the hosts that are called directly."""

    https: Proxy | None = None
    http: Proxy | None = None
    direct: tuple[NetworkPlace, ...] = ()
    is_off: bool = False
    """Whether `NO_PROXY` is `*`, so that all places are called directly."""

    def of_url(self, url: str) -> Proxy | None:
        """Return the proxy for a URL; None for a direct call."""
        parts = urlsplit(url)
        host = _host(parts)
        return self.of(parts.scheme, host, parts.port or DEFAULT_PORTS.get(parts.scheme, 0), _address(host))

    def of(self, scheme: str, host: str, port: int, address: IpAddress | None) -> Proxy | None:
        """Return the proxy for a host; None to call it directly. `host`: in lower case; `address`: None for a name."""
        proxy = self.https if scheme == "https" else self.http
        if proxy is None or self.is_off or is_loopback(host, address):
            return None
        for place in self.direct:
            if place.has_host(host, port) or (address is not None and place.has_address(address, port)):
                return None
        return proxy

    def with_proxy(self, url: str, source: str) -> "ProxyRules":
        """Return rules with the same direct hosts. The setting `source` names one proxy (`url`) for all other hosts."""
        proxy = Proxy(url, source)
        return replace(self, https=proxy, http=proxy)


NO_PROXIES = ProxyRules()


def environment_proxies(environment: Mapping[str, str]) -> ProxyRules:
    """Return the proxies that environment variables name. Raise ProxyError for a variable without a proxy's URL. Names
    in lower case have precedence, also if empty. `HTTP_PROXY` in upper case is ignored in CGI scripts.
    """
    places = list[NetworkPlace]()
    entries = [entry for entry in ENTRY_SEPARATORS.split(_value(environment, NONE_VARIABLE)[1]) if entry]
    if "*" in entries:
        return ProxyRules(is_off=True)
    for entry in entries:
        places += _places(entry)
    return ProxyRules(_proxy(environment, HTTPS_VARIABLE), _proxy(environment, HTTP_VARIABLE), tuple(places))


def is_loopback(host: str, address: IpAddress | None) -> bool:
    """Return whether a host is this machine: a name for it, or a loopback or unspecified address."""
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def is_local(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = _host(urlsplit(url))
    return is_loopback(host, _address(host))


def _proxy(environment: Mapping[str, str], name: str) -> Proxy | None:
    """Return the proxy that the variable `name`, or else ALL_PROXY, contains. A URL may omit `http://`."""
    variable, value = _value(environment, name)
    if not variable:
        variable, value = _value(environment, ALL_VARIABLE)
    if not value:
        return None
    url = (value if "://" in value else f"http://{value}").rstrip("/")
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not PRINTABLE_TEXT.fullmatch(url) or parts.path or "?" in url or "#" in url:
        raise ProxyError(variable)
    return Proxy(url, variable)


def _value(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return (name of the variable that is set, its value without spaces around it); empty strings if none is set."""
    if (value := environment.get(name.lower())) is not None:
        return name.lower(), value.strip()
    if name == HTTP_VARIABLE and CGI_VARIABLE in environment:
        return "", ""
    value = environment.get(name)
    return (name, value.strip()) if value else ("", "")


def _places(entry: str) -> Iterator[NetworkPlace]:
    """Yield the entries in a part of NO_PROXY: an address, a network, or a host with all hosts below it, each with an
    optional port. As in other clients, a part in any other form is ignored.
    """
    try:
        if (match := NETWORK_FORM.fullmatch(entry)) is not None:
            port = int(match["port"]) if match["port"] else None
            yield NetworkPlace(network=ip_network(match["network"], strict=False), port=port)
            return
        place = parse_place(entry.removeprefix("*").lstrip("."))
    except ValueError:
        return
    yield place
    if place.host:
        yield replace(place, host=f".{place.host}")


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").removesuffix(".")


def _address(host: str) -> IpAddress | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
