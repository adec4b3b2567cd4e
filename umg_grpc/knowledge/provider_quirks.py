"""Quirks of real providers' models: restrictions beyond the wire format. The rows are in `data/dialects.json`. `known`
looks up the quirks of one model: the rows have precedence over facts about the model (`models`).
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from urllib.parse import urlsplit

from msgspec import Struct, structs

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_fact_types import FACT_NAMES, NO_FACTS, ModelFacts
from umg_grpc.knowledge.model_facts_by_id import FOUND_MODELS, find
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks, SystemPlace
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.vendor_addresses import vendor_of


class DialectRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of quirks: a fact about models of providers, and its conditions, which must all match if set."""

    quirks: Quirks
    source: str
    as_of: str
    sure: bool = False
    """Whether the provider is certain to reject it; then bodies in the provider's own format are changed, too."""
    models: str = ""
    """Pattern of the beginning of the provider's model id, after a vendor's name (`vendor/`, `vendor.`)."""
    family: str = ""
    """Family of the model: the one that the operator sets, or the one in the id."""
    hosts: str = ""
    """Pattern of the domain of the channel's `base_url`; it includes all subdomains."""
    vendors: tuple[str, ...] = ()
    """Vendors (names of presets) to whose hosts it applies; "" stands for all hosts whose restrictions are unknown."""
    path: str = ""
    """Beginning of the path of the channel's `base_url`."""
    protocols: tuple[str, ...] = ()

    @property
    def is_general(self) -> bool:
        """Whether it is a rule about a wire format, for all models and providers."""
        return not (self.models or self.family or self.hosts or self.vendors)

    def holds_at(self, host: str, protocol: str, vendor: str = "", path: str = "") -> bool:
        """Return whether the conditions about the provider match. `host` and `path`: of the channel's base URL;
        `protocol`: wire format; `vendor`: vendor of the host, "" if unknown.
        """
        if not path.startswith(self.path) or (self.protocols and protocol not in self.protocols):
            return False
        if self.vendors and vendor not in self.vendors and not ("" in self.vendors and vendor in _uncharted()):
            return False
        return not self.hosts or _domain(self.hosts).fullmatch(host) is not None

    def holds_for(self, model: str, family: str) -> bool:
        """Return whether the conditions about the model match. `model`: provider's id; `family`: "" if unknown."""
        if self.family and self.family == family:
            return True
        return not self.models or _beginning(self.models).match(model) is not None


@cache
def _uncharted() -> frozenset[str]:
    return frozenset(row.name for row in PROVIDER_PRESETS.values() if not row.restrictions_known)


@cache
def _domain(hosts: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*\.)?(?:{hosts})")


@cache
def _beginning(models: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*[/.])?(?:{models})", re.IGNORECASE)


PROVIDER_QUIRKS = tuple(read_rows("dialects", DialectRow))
"""Rows of the data file. The first matching row that sets a quirk decides: hosts before models, special ids first."""


def known(model: str, family: str, base_url: str, protocol: str, *, certain: bool = False) -> Quirks:
    """Return the quirks of a provider's model for requests in the wire format `protocol`. `base_url`: address of the
    channel, whose host identifies the provider; `certain`: count only certain rejections. Rows have precedence over
    facts about the model; among rows the first that sets a quirk decides.
    """
    found = _merged(_numbers_of(model, family, base_url, protocol), certain)
    facts = find(model, vendor_of(base_url)).facts
    if facts is NO_FACTS:
        return found
    if certain:
        facts = structs.replace(facts, **dict.fromkeys(set(FACT_NAMES) - facts.sure))
    found = found.over(quirks_of(facts, protocol))
    return NO_QUIRKS if found == NO_QUIRKS else found  # by which codecs recognise it


def rows_of(model: str, family: str, base_url: str, protocol: str) -> tuple[DialectRow, ...]:
    """Return the rows that apply to a provider's model, in the order in which they decide."""
    return tuple(PROVIDER_QUIRKS[number] for number in _numbers_of(model, family, base_url, protocol))


@lru_cache(FOUND_MODELS)
def _numbers_of(model: str, family: str, base_url: str, protocol: str) -> tuple[int, ...]:
    rows = _rows_at(base_url, protocol)
    return tuple(number for number in rows if PROVIDER_QUIRKS[number].holds_for(model, family))


@lru_cache(256)
def _rows_at(base_url: str, protocol: str) -> tuple[int, ...]:
    url, vendor = urlsplit(base_url), vendor_of(base_url)
    place = url.hostname or "", protocol, vendor, url.path
    return tuple(number for number, row in enumerate(PROVIDER_QUIRKS) if row.holds_at(*place))


@lru_cache(FOUND_MODELS)
def _merged(numbers: tuple[int, ...], certain: bool) -> Quirks:
    found = NO_QUIRKS
    for row in (PROVIDER_QUIRKS[number] for number in numbers):
        if row.sure or not certain:
            found = found.over(row.quirks)
    return NO_QUIRKS if found == NO_QUIRKS else found


SYSTEM_PLACES: Mapping[bool | None, SystemPlace] = {True: "anywhere", False: "first"}


def quirks_of(facts: ModelFacts, protocol: str) -> Quirks:
    """Return the quirks that follow from facts about a model, for requests in the wire format `protocol`."""
    is_chat, refused = protocol == "chat", facts.rejects or frozenset()
    takes_levels = bool(facts.efforts)  # in native, a level replaces a budget
    budgets = None if protocol == "native" and facts.budgets and takes_levels else facts.budgets
    return Quirks(
        reasoning=False if facts.thinking == "never" else None,
        thinking=facts.thinking,
        efforts=facts.efforts,
        nearest_efforts=facts.nearest_efforts,
        reasoning_budget=budgets,
        budget_range=facts.budget_range,
        adaptive=facts.adaptive,
        max_effort_when_off=facts.max_effort_when_off,
        sampling=facts.sampling,
        tool_choices=facts.forced_tools,
        prefill=facts.prefill,
        system_place=SYSTEM_PLACES.get(facts.system_anywhere) if protocol == "messages" else None,
        schema_dialect="json_object" if is_chat and facts.json_schema is False else None,
        rejects=refused - {"stop", "n"} or None if protocol in {"chat", "responses"} else None,
        rejects_beside_reasoning=facts.rejects_beside_reasoning if protocol in {"chat", "responses"} else None,
        max_stop_sequences=0 if "stop" in refused else None,
        max_candidates=1 if "n" in refused else None,
        chat_tools=facts.chat_tools if is_chat else None,
        served="chat" in facts.endpoints if is_chat and facts.endpoints is not None else None,
        inputs=facts.inputs,
        max_output_tokens=facts.output_tokens,
    )
