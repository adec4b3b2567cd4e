"""Quirks of real providers' models: restrictions beyond the wire format. The rows are in `data/dialects.json`.

`known` looks up the quirks of one model.
"""

import re
from functools import cache
from urllib.parse import urlsplit

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.quirks import NO_QUIRKS, Quirks


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of quirks: a fact about models of providers, and the conditions under which it applies.

    All conditions must match; an unset condition always matches.
    """

    quirks: Quirks
    source: str
    """Document or report of the fact."""
    as_of: str
    """Date on which the source was read."""
    sure: bool = False
    """Whether the refusal is certain, so that bodies of the provider's own format are changed for it, too."""
    models: str = ""
    """Pattern of the beginning of the provider's model id, after a vendor's name (`vendor/`, `vendor.`)."""
    family: str = ""
    """Family of the model; a row matches by the family that the operator sets, or by the id."""
    hosts: str = ""
    """Pattern of the domain of the channel's `base_url`; it includes all subdomains."""
    protocols: tuple[str, ...] = ()
    """Formats in which it applies."""

    def holds(self, model: str, family: str, host: str, protocol: str) -> bool:
        """Return whether all conditions of the row match: the provider's model id, its family ("" if unknown), the
        provider's host, and the wire format.
        """
        if self.protocols and protocol not in self.protocols:
            return False
        if self.hosts and _domain(self.hosts).fullmatch(host) is None:
            return False
        if self.family and self.family == family:
            return True
        return not self.models or _beginning(self.models).match(model) is not None


@cache
def _domain(hosts: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*\.)?(?:{hosts})")


@cache
def _beginning(models: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*[/.])?(?:{models})", re.IGNORECASE)


PROVIDER_QUIRKS = tuple(read_rows("dialects", Row))
"""For each quirk the first matching row that sets it decides: hosts before models, special ids before general ones."""


def known(model: str, family: str, base_url: str, protocol: str, *, certain: bool = False) -> Quirks:
    """Return the quirks in the table for a provider's model, when requests are encoded as the wire format `protocol`.

    `family`: family of the model, "" if unknown; `base_url`: address of the channel, whose host identifies the
    provider; `certain`: whether only rows of refusals that are certain count. Of several rows that set the same quirk,
    the first decides.
    """
    host = urlsplit(base_url).hostname or ""
    found = NO_QUIRKS
    for row in PROVIDER_QUIRKS:
        if (row.sure or not certain) and row.holds(model, family, host, protocol):
            found = found.over(row.quirks)
    return found
