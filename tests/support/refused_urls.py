"""URLs that the guard for callers' URLs refuses: every spelling of a host that is not on the public internet, and every
unusual form.

The names are resolved by `resolve`, as a hostile DNS would resolve them. Tests of each path that takes a caller's URL
send all of them.
"""

import socket
from dataclasses import dataclass

from umg_grpc.upstream.http1.dns_cache import Addresses

PUBLIC_V4, PUBLIC_V6 = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"
NAMES = {
    "public.example.com": [PUBLIC_V4, PUBLIC_V6],
    "to-loopback.example.com": ["127.0.0.1"],
    "to-private.example.com": ["10.0.0.7"],
    "to-metadata.example.com": ["169.254.169.254"],
    "to-metadata-v6.example.com": ["fd00:ec2::254"],
    "to-this-host.example.com": ["0.0.0.0"],
    "to-loopback-v6.example.com": ["::1"],
    "to-mapped.example.com": ["::ffff:10.0.0.7"],
    "to-nat64.example.com": ["64:ff9b::a00:7"],
    "to-both.example.com": [PUBLIC_V4, "192.168.1.1"],
    "to-both-families.example.com": [PUBLIC_V4, "fc00::7"],
    "to-carrier.example.com": ["100.64.0.1"],
}


async def resolve(name: str, port: int) -> Addresses:
    """Return the addresses of a name of the table. Raise OSError for any other name."""
    try:
        addresses = NAMES[name.removesuffix(".")]
    except KeyError:
        raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
    return [found for address in addresses for found in numeric(address, port)]


def numeric(address: str, port: int) -> Addresses:
    return [*socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]


@dataclass(frozen=True)
class RefusedUrl:
    id: str
    url: str


def _urls(kind: str, *urls: str) -> list[RefusedUrl]:
    return [RefusedUrl(f"{kind}: {url}", url) for url in urls]


REFUSED_URLS = [
    *_urls("loopback", "https://127.0.0.1/x", "https://127.1.2.3/", "https://localhost/x", "https://LOCALHOST./x"),
    *_urls("loopback", "https://a.localhost/x", "https://[::1]/x", "https://[0:0:0:0:0:0:0:1]/x"),
    *_urls("this host", "https://0.0.0.0/x", "https://0.1.2.3/x", "https://[::]/x"),
    *_urls("decimal", "https://2130706433/x", "https://3232235777/x", "https://134744072/x"),
    *_urls("octal", "https://0177.0.0.1/x", "https://017700000001/x", "https://0300.0250.0.1/x"),
    *_urls("hex", "https://0x7f.0.0.1/x", "https://0x7f000001/x", "https://0X7F000001/x", "https://0xa9.0xfe.0xa9.0xfe/"),
    *_urls("short", "https://127.1/x", "https://127.0.1/x", "https://10.1/x", "https://0/x", "https://1.2.3.4.5/x"),
    *_urls("mixed", "https://0x7f.1/x", "https://169.254.0xa9fe/x", "https://0251.254.169.254/"),
    *_urls("trailing dot", "https://127.0.0.1./x", "https://localhost./x", "https://127.0.0.1../x"),
    *_urls("private", "https://10.0.0.1/x", "https://172.16.0.1/x", "https://172.31.255.254/x", "https://192.168.1.1/x"),
    *_urls("link-local", "https://169.254.1.1/x", "https://[fe80::1]/x", "https://[fe80::1%25eth0]/x", "https://[fe80::1%eth0]/x"),
    *_urls("metadata", "https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/latest/", "https://100.100.100.200/"),
    *_urls("metadata", "https://metadata.google.internal/computeMetadata/v1/", "https://metadata/x", "https://168.63.129.16/x"),
    *_urls("metadata", "https://192.0.0.192/x", "https://[fd20:ce::254]/x"),
    *_urls("carrier", "https://100.64.0.1/x", "https://100.127.255.254/x"),
    *_urls("multicast", "https://224.0.0.1/x", "https://239.255.255.250/x", "https://[ff02::1]/x"),
    *_urls("reserved", "https://240.0.0.1/x", "https://255.255.255.255/x", "https://192.0.2.1/x", "https://198.18.0.1/x"),
    *_urls("reserved", "https://198.51.100.1/x", "https://203.0.113.1/x", "https://[2001:db8::1]/x", "https://[3fff::1]/x"),
    *_urls("unique local", "https://[fc00::1]/x", "https://[fd12:3456::1]/x", "https://[fec0::1]/x"),
    *_urls("mapped", "https://[::ffff:127.0.0.1]/x", "https://[::ffff:7f00:1]/x", "https://[::ffff:0:127.0.0.1]/x"),
    *_urls("mapped", "https://[::ffff:93.184.216.34]/x", "https://[0:0:0:0:0:ffff:a9fe:a9fe]/x"),
    *_urls("compatible", "https://[::127.0.0.1]/x", "https://[::a9fe:a9fe]/x"),
    *_urls("NAT64", "https://[64:ff9b::127.0.0.1]/x", "https://[64:ff9b::7f00:1]/x", "https://[64:ff9b:1::a00:1]/x"),
    *_urls("6to4", "https://[2002:7f00:1::]/x", "https://[2002:a9fe:a9fe::1]/x"),
    *_urls("Teredo", "https://[2001:0:5ef5:79fd::80ff:fffe]/x", "https://[2001::1]/x"),
    *_urls("ISATAP", "https://[2606:2800::5efe:10.0.0.1]/x", "https://[2606:2800::200:5efe:a00:1]/x"),
    *_urls("percent", "https://%31%32%37.0.0.1/x", "https://127.0.0.1%2f@public.example.com/", "https://localhos%74/x"),
    *_urls("full-width", "https://１２７.０.０.１/x", "https://127。0。0。1/x", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/x", "https://①②⑦.0.0.1/x"),
    *_urls("user", "https://user@public.example.com/x", "https://u:p@public.example.com/x", "https://@public.example.com/x"),
    *_urls("user", "https://public.example.com@127.0.0.1/x", "https://public.example.com:443@169.254.169.254/"),
    *_urls("backslash", "https://public.example.com\\@127.0.0.1/x", "https:\\\\127.0.0.1/x", "https://127.0.0.1\\.example.com/"),
    *_urls("port", "https://public.example.com:22/x", "https://public.example.com:80/x", "https://public.example.com:6379/"),
    *_urls("port", "https://public.example.com:0/x", "https://public.example.com:65536/x", "https://public.example.com:/x"),
    *_urls("port", "https://public.example.com:8443/x", "https://public.example.com:443:443/", "https://public.example.com:+443/"),
    *_urls("scheme", "http://public.example.com/x", "http://public.example.com:443/x", "ftp://public.example.com/x"),
    *_urls("scheme", "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "gopher://127.0.0.1:6379/_x", "dict://127.0.0.1:11211/"),
    *_urls("scheme", "ldap://127.0.0.1/x", "jar:https://public.example.com!/x", "unix:///run/x.sock", "//127.0.0.1/x"),
    *_urls("form", "", "x", "https://", "https:///x", "https:/public.example.com/x", "https:public.example.com", "127.0.0.1/x"),
    *_urls("form", "https://exa mple.com/x", "https://public.example.com/a b", "https://public.example.com/\r\nHost: x"),
    *_urls("form", " https://public.example.com/x", "https://public.example.com/\x00", "https://\tpublic.example.com/x"),
    *_urls("form", "https://[::1/x", "https://::1/x", "https://[]/x", "https://[1.2.3.4]/x", "https://[::g]/x", "https://.../x"),
    *_urls("form", "https://-x-.example.com/x", "https://a..example.com/x", f"https://{'a' * 64}.example.com/x"),
    RefusedUrl("form: too long", "https://public.example.com/" + "x" * 8192),
    RefusedUrl("form: a host of 300 characters", f"https://{'a.' * 150}com/x"),
    *_urls("local name", "https://intranet/x", "https://nas.local/x", "https://vault.corp/x", "https://x.home.arpa/x"),
    *_urls("local name", "https://kubernetes.default.svc.cluster.local/x", "https://db.internal/x", "https://router.lan/x"),
    *_urls("name", *(f"https://{name}/x" for name in NAMES if name.startswith("to-"))),
]  # fmt: skip
