"""Dialects of vendors in operations with a single response: members that a vendor names differently, rejects, or
accepts with other values. The rows are in `data/member_dialects.json`.

Pure: no I/O and no clock.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class PurposeMember(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Member of a vendor's body that states the purpose of embedding vectors."""

    name: str
    values: Mapping[str, str]
    """Canonical task type -> the vendor's value with the same meaning."""


class MemberDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: members of the bodies that a vendor's models accept. The rejections are certain, so that
    callers' bodies in the same format are changed, too.
    """

    hosts: str
    """Pattern of the domain of the channel's `base_url`; it includes all subdomains."""
    models: str = ""
    """Pattern of the beginning of the model id; "" for all models of the vendor."""
    protocols: tuple[str, ...]
    path: str = ""
    """Path of the call at the vendor, if it differs from the wire format's; "" if not."""
    renames: Mapping[str, str] = {}
    """Top-level member of the format -> its name at the vendor."""
    leaves_out: Mapping[str, tuple[str, ...]] = {}
    """Top-level member that the vendor rejects -> values that it rejects; empty for any value."""
    adds: Mapping[str, str] = {}
    """Top-level member that a body may lack -> the wire format's default, if the vendor's default differs."""
    only_dimensions: int = 0
    """Fixed vector length of a model that rejects any requested length; 0 for other models."""
    task: PurposeMember | None = None
    source: str
    as_of: str


MEMBER_DIALECTS = tuple(read_rows("member_dialects", MemberDialect))
"""Rows of the data file; the first that matches applies."""


def dialects_at(base_url: str) -> tuple[MemberDialect, ...]:
    """Return the rows for the vendor at the address of a channel; none for an unknown vendor."""
    host = urlsplit(base_url).hostname or ""
    return tuple(row for row in MEMBER_DIALECTS if re.fullmatch(rf"(?:.*\.)?(?:{row.hosts})", host))


def dialect_of(rows: tuple[MemberDialect, ...], model: str, protocol: str) -> MemberDialect | None:
    """Return a vendor's row that applies to a model in a wire format; None if no row does."""
    for row in rows:
        if protocol in row.protocols and re.match(row.models, model, re.IGNORECASE):
            return row
    return None
