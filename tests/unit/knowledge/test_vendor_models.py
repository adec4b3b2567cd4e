"""Models that are known of the vendors of presets, which are listed until the vendor's own list is read."""

import pytest

from tests.pairs.vendors.sources import cost_map
from umg_grpc.knowledge.operations_by_model_id import known_operations
from umg_grpc.knowledge.preset_model_lists import vendor_models
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS


def test_aliases_that_another_gateway_resolves_are_no_models_of_a_vendor() -> None:
    aliases = {name for name, entry in cost_map().items() if "alias_of" in entry}
    assert aliases
    found = {name: sorted(aliases.intersection(vendor_models(name))) for name in PROVIDER_PRESETS}
    assert not any(found.values()), found


@pytest.mark.parametrize("preset", ["openai", "anthropic", "gemini", "voyage"])
def test_each_known_model_fits_a_pattern_of_the_preset_and_has_an_operation(preset: str) -> None:
    models = vendor_models(preset)
    assert models
    assert all(PROVIDER_PRESETS[preset].has_model(model) and known_operations(model) != frozenset() for model in models)
