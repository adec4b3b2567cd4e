"""Vendors of models, by the addresses of their APIs.

A vendor has the name of its preset. Pure: no I/O and no clock.
"""

import re
from functools import cache
from urllib.parse import urlsplit

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.presets import PROVIDERS

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1"})
"""Hosts of presets that identify no vendor: any program may listen there."""


class OtherHost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Address of a vendor that is not the one of its preset."""

    host: str
    """Host; a part in `<>` stands for any text without a dot."""
    path: str = ""
    """Beginning of the path, where several vendors share the host."""
    vendor: str
    source: str
    as_of: str


def vendor_of(base_url: str) -> str:
    """Return the vendor whose API has the address `base_url`; "" if it is unknown.

    Of vendors that share a host, it is the one with the longest path in front of that of the address, else the first.
    """
    url = urlsplit(base_url)
    host, path = url.hostname or "", url.path
    found = [(start, vendor) for pattern, start, vendor in _addresses() if pattern.fullmatch(host)]
    by_path = max((each for each in found if path.startswith(each[0])), key=lambda each: len(each[0]), default=None)
    _, vendor = by_path or next(iter(found), ("", ""))
    return vendor


@cache
def _addresses() -> list[tuple[re.Pattern[str], str, str]]:
    """Return (pattern of the host, beginning of the path, vendor) of all known addresses."""
    found = []
    for provider in PROVIDERS.values():
        url = urlsplit(provider.base_url)
        if url.hostname and url.hostname not in LOCAL_HOSTS:
            found.append((_pattern(url.hostname), url.path.partition("<")[0], provider.name))
    found.extend((_pattern(row.host), row.path, row.vendor) for row in read_rows("vendor_hosts", OtherHost))
    return found


def _pattern(host: str) -> re.Pattern[str]:
    """Return the pattern of a host, whose parts in `<>` stand for any text without a dot."""
    return re.compile(r"[^.]+".join(map(re.escape, re.split(r"<[^>]*>", host))))
