"""Vendors of models, named like their presets, by the addresses of their APIs. Pure: no I/O and no clock."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

CLOSED_MAKERS = ("openai", "anthropic", "gemini", "xai", "voyage")
"""Vendors whose models can be called only by their own API."""
OPEN_MAKERS = ("mistral", "deepseek", "moonshot", "zai", "minimax", "dashscope", "cohere")
"""Vendors whose models other providers serve too, with other limits and possibly without a price."""
OPEN_WEIGHTS = ("gpt-oss-", "gemma-")
"""Beginnings of the ids of models of closed makers that are served by others, too."""
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


class Region(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Host and prefix of model ids for which a provider's prices are those of a region."""

    host: str
    model: str = ""
    """Regular expression of the beginning of the provider's ids."""
    region: str
    """Region of the rates; `\\1` is the first group in `host` and `model`."""
    source: str
    as_of: str


@lru_cache(256)
def vendor_of(base_url: str) -> str:
    """Return the vendor whose API has the address `base_url`; "" if there is none. If vendors share the host, the one
    whose path is the longest prefix of the address decides, else the first.
    """
    url = urlsplit(base_url)
    fixed, patterns = _addresses()
    host = url.hostname or ""
    found = fixed.get(host) or [each for pattern, each in patterns if pattern.fullmatch(host)]
    by_path = max((each for each in found if url.path.startswith(each.path)), key=_path_length, default=None)
    address = by_path or next(iter(found), None)
    return address.vendor if address is not None else ""


@lru_cache(256)
def region_of(base_url: str, model: str) -> str:
    """Return the region to which a channel limits a provider's model, as prices name the region, else ""."""
    host = urlsplit(base_url).hostname or ""
    for row in _regions():
        if match := re.match(f"(?:{row.host}) {row.model}", f"{host} {model}"):
            return match.expand(row.region)
    return ""


@cache
def known_vendors() -> frozenset[str]:
    """Return all vendors that `vendor_of` can return, and all makers, without ""."""
    fixed, patterns = _addresses()
    found = {address.vendor for addresses in fixed.values() for address in addresses}
    return frozenset({*found, *(address.vendor for _, address in patterns), *CLOSED_MAKERS, *OPEN_MAKERS})


@cache
def _regions() -> Sequence[Region]:
    return tuple(read_rows("price_regions", Region))


def is_closed(model: str, maker: str) -> bool:
    """Return whether the maker's rules and prices apply to a model at every provider."""
    return maker in CLOSED_MAKERS and not model.startswith(OPEN_WEIGHTS)


class ApiPath(NamedTuple):
    """Beginning of the path of a vendor's API."""

    path: str
    vendor: str


def _path_length(address: ApiPath) -> int:
    return len(address.path)


@cache
def _addresses() -> tuple[Mapping[str, Sequence[ApiPath]], Sequence[tuple[re.Pattern[str], ApiPath]]]:
    """Return the known addresses, presets first: (by exact host, by the pattern of a host with `<>` parts)."""
    fixed: dict[str, list[ApiPath]] = {}
    patterns = []
    presets = ((urlsplit(row.base_url), row.vendor or row.name) for row in PROVIDER_PRESETS.values())
    rows = [(url.hostname or "", url.path.partition("<")[0], name) for url, name in presets]
    rows += [(row.host, row.path, row.vendor) for row in read_rows("vendor_hosts", OtherHost)]
    for host, path, vendor in rows:
        if "<" in host:
            pattern = r"[^.]+".join(map(re.escape, re.split(r"<[^>]*>", host)))
            patterns.append((re.compile(pattern), ApiPath(path, vendor)))
        elif host not in LOCAL_HOSTS:
            fixed.setdefault(host, []).append(ApiPath(path, vendor))
    return fixed, patterns
