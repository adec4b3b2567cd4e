"""Prices of calls through a region, against those of the pinned cost map for it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from scripts.knowledge import packages
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.knowledge.conditional_price_rates import Terms, prices_at
from umg_grpc.knowledge.price_calculation import (
    CACHE_READ,
    CACHE_WRITE,
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    VIDEO_SECOND,
    variant_of,
)
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.shipped_prices import shipped_price_list
from umg_grpc.knowledge.vendor_addresses import region_of, vendor_of

ROUNDING = 0.98
"""Part of the price of the cost map that is enough."""
MODES = frozenset({"chat", "completion", "responses", "embedding"})
BEDROCK_HOST = re.compile(r"bedrock(_mantle)?/([a-z]{2}(?:-gov)?-[a-z]+-[0-9])/([^/]+)")
PROFILE = re.compile(r"(?:bedrock/)?((us-gov|us|eu|apac|jp|au|in)\..+)")
AZURE = re.compile(r"azure/(us-gov|us|eu|apac)/([^/]+)")
UNITS = {
    "input_cost_per_token": INPUT_TOKEN,
    "output_cost_per_token": OUTPUT_TOKEN,
    "cache_read_input_token_cost": CACHE_READ,
    "cache_creation_input_token_cost": CACHE_WRITE,
}
SECOND = re.compile(r"output_cost_per_second(?:_([0-9]+p))?")
SINGAPORE = "qwencloud/"
"""Beginning of the keys of Alibaba's international platform."""
PRICE = re.compile(f"({'|'.join(UNITS)})(?:_above_([0-9]+)k_tokens)?")
EXCEPTIONS: Mapping[str, str] = {}
"""Key of the cost map -> reason for a lower price."""


class Regional(NamedTuple):
    vendor: str
    region: str
    model: str


def call_of(key: str) -> Regional | None:
    """Return the call that has the prices of a key of the cost map; None for a key without a region."""
    if match := AZURE.fullmatch(key):
        url = f"https://r.openai.azure.{'us' if match[1] == 'us-gov' else 'com'}/openai/v1"
        return Regional(vendor_of(url), region_of(url, match[2]) or match[1], match[2])
    if match := BEDROCK_HOST.fullmatch(key):
        host = f"bedrock-mantle.{match[2]}.api.aws" if match[1] else f"bedrock-runtime.{match[2]}.amazonaws.com"
        model = match[3]
    elif match := PROFILE.fullmatch(key):
        host = f"bedrock-runtime.{'us-gov-west-1' if match[2] == 'us-gov' else 'us-east-1'}.amazonaws.com"
        model = match[1]
    else:
        return None
    url = f"https://{host}/{'anthropic' if 'claude' in model else 'openai'}/v1"
    return Regional(vendor_of(url), region_of(url, model), model)


def too_low(call: Regional, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the prices of a call that are lower than those of an entry of the cost map."""
    prices = shipped_price_list(call.model, call.vendor, call.region)
    for name, value in entry.items():
        if (match := PRICE.fullmatch(name)) and value:
            tokens = int(match[2] or 0) * 1000
            unit = UNITS[match[1]]
            charged = prices_at(prices, Terms(input_tokens=tokens + 1))[0].price_of(unit) / 1e12
            if charged < value * ROUNDING:
                yield f"{name}: {charged * 1e6:.4g}, not {value * 1e6:.4g}"


def test_a_call_through_a_region_is_charged_at_least_the_price_of_the_cost_map() -> None:
    folder = installed_or_skipped(packages.installed)
    package = DATA_PACKAGES["generated_models"]
    listed = json.loads((folder / package.name / package.member.rpartition("/")[2]).read_text())
    calls = {key: call for key in listed if (call := call_of(key)) is not None and listed[key].get("mode") in MODES}
    assert len(calls) > 300
    found = {key: problems for key, call in calls.items() if (problems := list(too_low(call, listed[key])))}
    assert found.keys() == EXCEPTIONS.keys(), "\n".join(f"{key}: {', '.join(each)}" for key, each in found.items())


def test_a_video_of_singapore_is_charged_the_price_of_the_cost_map() -> None:
    folder = installed_or_skipped(packages.installed)
    package = DATA_PACKAGES["generated_models"]
    listed = json.loads((folder / package.name / package.member.rpartition("/")[2]).read_text())
    url = "https://dashscope-intl.aliyuncs.com"
    videos = [(key, entry) for key, entry in listed.items() if key.startswith(SINGAPORE) and "video" in entry["mode"]]
    assert len(videos) > 10
    for key, entry in videos:
        model = key.removeprefix(SINGAPORE)
        prices, _ = prices_at(shipped_price_list(model, vendor_of(url), region_of(url, model)), Terms())
        for name, value in entry.items():
            if match := SECOND.fullmatch(name):
                assert prices.price_of(variant_of(VIDEO_SECOND, match[1] or "")) == round(value * 1e12), (key, name)


VERTEX = {"aiplatform": 1.0, "aiplatform.eu.rep": 1.1, "aiplatform.us.rep": 1.1, "europe-west1-aiplatform": 1.1}
"""Host -> factor of the price, of the models that Google sells at all addresses but the global one with a surcharge."""


@pytest.mark.parametrize(("host", "times"), VERTEX.items(), ids=VERTEX)
@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-4-5@20250929", "gemini-3.5-flash"])
def test_addresses_of_regions_at_vertex_cost_more(model: str, host: str, times: float) -> None:
    url = f"https://{host}.googleapis.com/v1/projects/p/locations/l/publishers/google"

    def charged(region: str) -> int:
        prices = shipped_price_list(model, vendor_of(url), region)
        return prices_at(prices, Terms(input_tokens=1))[0].price_of(INPUT_TOKEN)

    assert charged(region_of(url, model)) == round(charged("") * times)


def test_models_without_a_surcharge_cost_the_same_at_all_addresses() -> None:
    found = {
        prices_at(shipped_price_list("gemini-2.5-pro", "vertex", region), Terms(input_tokens=1))[0].price_of(
            INPUT_TOKEN
        )
        for region in ("", "eu", "europe-west1")
    }
    assert len(found) == 1
