"""Entries of the operator's lists of hosts, domains, addresses and networks, each with an optional port."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network


DEFAULT_PORTS = {"https": 443, "http": 80}

ADDRESS_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
HOST_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
PLACE_FORM = re.compile(
    r"(?P<host>[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?|\[(?P<in_brackets>[^\]]+)\](?::(?P<its_port>[0-9]{1,5}))?"
)


@dataclass(frozen=True)
class NetworkPlace:
    """Host, domain or network, with one port or all, that the operator exempts from egress rules or from proxies."""

    host: str = ""
    """Host; with a leading dot all hosts below a domain. Empty for a network."""
    network: IpNetwork | None = None
    port: int | None = None
    """The only port in the list; None for all ports."""

    def has_host(self, host: str, port: int) -> bool:
        """Return whether this entry contains a host at a port: the host, or a domain above it. False for a network."""
        is_same = host.endswith(self.host) if self.host.startswith(".") else host == self.host
        return bool(self.host) and is_same and self.port in {None, port}

    def has_address(self, address: IpAddress, port: int) -> bool:
        """Return whether this entry is a network with the address, and its port, if any, is this one."""
        return self.network is not None and address in self.network and self.port in {None, port}


def parse_place(text: str) -> NetworkPlace:
    """Parse an entry of a list: `host`, `*.domain`, an address or a network. Each may have `:port`; an IPv6 address
    with a port is in brackets. Raise ValueError for any other text.
    """
    match = PLACE_FORM.fullmatch(text.strip().lower())
    if match is None:  # an IPv6 address or network without brackets
        return NetworkPlace(network=ip_network(text.strip()))
    port = match["port"] or match["its_port"]
    if port is not None and not 1 <= int(port) <= 65535:
        raise ValueError(f"{port} is no port")
    number = None if port is None else int(port)
    if match["in_brackets"] is not None:
        return NetworkPlace(network=IPv6Network(match["in_brackets"]), port=number)
    host: str = match["host"]
    if "/" in host or ADDRESS_NUMBER.fullmatch(host.rpartition(".")[2]):
        return NetworkPlace(network=IPv4Network(host), port=number)
    name = ascii_host(host.removeprefix("*.").removesuffix("."))
    return NetworkPlace(f".{name}" if host.startswith("*.") else name, port=number)


def place_of(base_url: str) -> NetworkPlace | None:
    """Return the host and port of a provider's address, as an entry of a list; None for an unusable address."""
    url = urlsplit(base_url)
    if not url.hostname:
        return None
    port = url.port or DEFAULT_PORTS.get(url.scheme)
    try:
        place = parse_place(f"[{url.hostname}]" if ":" in url.hostname else url.hostname)
    except ValueError:
        return None
    return NetworkPlace(place.host, place.network, port)


def ascii_host(host: str) -> str:
    """Return the host name in lower case and ASCII (IDNA). Raise ValueError for an invalid host name."""
    if not host.isascii():
        from yarl import URL  # here: few hosts need it, and each command on a database imports this module

        host = URL.build(scheme="http", host=host).raw_host or ""
    name = host.lower()
    if len(name) > 253 or not all(HOST_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{host} is no host")
    return name
