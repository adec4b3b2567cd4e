"""Known models of presets' vendors, for model lists when the provider's own list is not known. Pure: no I/O."""

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_facts_by_id import find, models_of
from umg_grpc.knowledge.operations_by_model_id import known_operations
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider

NO_MODELS = frozenset({"completion", "decisions", "evaluation", "extraction"})
"""Modes of the cost map that are not served; those of speech and others are known by the ids."""


class _OtherModels(Struct, frozen=True):
    """Models of one provider in the public cost map that the generated facts do not have, with the provider's ids."""

    provider: str
    mode: str
    models: tuple[str, ...]
    prefixed: tuple[str, ...] = ()
    aliases: dict[str, str] = {}
    """Aliases that only the gateway of the cost map resolves: the provider does not have them."""


class _OtherProvider(Struct, frozen=True):
    """Provider of the public cost map, with the presets that stand for it."""

    name: str
    presets: tuple[str, ...] = ()


@cache
def vendor_models(preset: str) -> tuple[str, ...]:
    """Return the provider's ids of a preset's known models that match its patterns, sorted; empty for an unknown
    preset. Retired models, and models without a served operation, are left out. A pattern for every id is ignored,
    since it covers models of other makers or an operator's deployments.
    """
    row = PROVIDER_PRESETS.get(preset)
    if row is None:
        return ()
    entries = [entry for entry in row.models if entry.upstream != "*"]
    known = {model for model in _ids(row) if any(entry.matches(model) for entry in entries)}
    return tuple(sorted(model for model in known if _is_served(model, row.vendor or row.name)))


def _ids(preset: Provider) -> Iterator[str]:
    if preset.kind == "maker":
        yield from models_of(preset.vendor or preset.name)
    yield from _other_models().get(preset.name, ())


def _is_served(model: str, vendor: str) -> bool:
    retired = find(model, vendor).facts.retired
    is_current = retired is None or retired > DATA_PACKAGES["generated_models"].as_of
    is_template = model.startswith("ft:")  # stands for the fine-tuned models of all accounts
    return is_current and not is_template and known_operations(model) != frozenset()


@cache
def _other_models() -> Mapping[str, frozenset[str]]:
    presets = {row.name: row.presets for row in read_rows("litellm_providers", _OtherProvider)}
    found: dict[str, set[str]] = {}
    for row in read_rows("litellm_models", _OtherModels):
        for preset in presets.get(row.provider, ()) if row.mode not in NO_MODELS else ():
            found.setdefault(preset, set()).update(each for each in row.models if each not in row.aliases)
            found[preset].update(row.prefixed)
    return {preset: frozenset(models) for preset, models in found.items()}
