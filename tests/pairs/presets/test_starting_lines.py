"""Lines of config with which README and docs/providers.md start: each vendor's models are listed and answer."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession

from tests.pairs.presets.strict_vendors import StrictVendors, documented
from tests.pairs.presets.test_documented_calls import call, plain
from tests.pairs.table import TEXT_PROVIDERS
from tests.support.gateways import Running, running
from tests.support.providers.server import serve_provider
from umg_grpc.config.importers.from_environment import config_text
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

ROOT = Path(__file__).parents[3]


def first_block(page: str) -> str:
    """Return the first config of a page."""
    found = re.search(r"```yaml\n(channels:.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert found is not None, page
    return found[1]


@dataclass(frozen=True)
class Lines:
    """Lines of config, and the providers that they name."""

    id: str
    text: str
    providers: tuple[str, ...]


IN_ENVIRONMENT = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OLLAMA_HOST": "localhost"}
"""Variables that README names for `--from-env`."""
LINES = [
    Lines("README", first_block("README.md"), ("openai", "anthropic", "ollama")),
    Lines("docs/providers.md", first_block("docs/providers.md"), ("openai", "anthropic", "groq", "ollama", "azure")),
    Lines("README, --from-env", config_text(IN_ENVIRONMENT), ("openai", "anthropic", "gemini", "ollama")),
]


def at_simulations(text: str, proxy: str) -> str:
    """Return a config whose channels call the simulated vendors behind a proxy, without TLS, with their keys."""
    config = yaml.safe_load(text)
    for channel in config["channels"]:
        preset = PROVIDER_PRESETS[channel["provider"]]
        channel.update(
            api_key=documented()[preset.name].key,
            base_url=plain(preset.base_url),
            base_urls={protocol: plain(url) for protocol, url in preset.base_urls.items()},
            proxy=proxy,
        )
    return yaml.safe_dump(config)


async def listed(made: Running, **headers: str) -> list[str]:
    """Return the ids of the model list, in the shape that the headers select."""
    async with ClientSession(headers=made.headers | headers) as session:
        found, query = list[str](), ""
        while True:
            async with session.get(f"{made.url}/v1/models{query}") as response:
                body: dict[str, Any] = await response.json()
            if "models" in body:
                found += [model["name"].removeprefix("models/") for model in body["models"]]
                query = f"?pageToken={body['nextPageToken']}" if "nextPageToken" in body else ""
            else:
                found += [model["id"] for model in body["data"]]
                query = f"?after_id={body['last_id']}" if body.get("has_more") else ""
            if not query:
                return found


@pytest.mark.parametrize("case", LINES, ids=lambda case: case.id)
async def test_the_lines_list_and_answer_models_of_each_vendor(case: Lines, tmp_path: Path) -> None:
    named = [channel["provider"] for channel in yaml.safe_load(case.text)["channels"]]
    assert sorted(named) == sorted(case.providers)
    async with serve_provider(StrictVendors()) as vendors:
        async with running(at_simulations(case.text, vendors.url), tmp_path) as made:
            await made.service._discovery._first.wait()
            ids = await listed(made)
            assert await listed(made, **{"anthropic-version": "2023-06-01"}) == ids
            assert await listed(made, **{"x-goog-api-key": made.key}) == ids
            async with ClientSession(headers=made.headers) as session:
                for name in case.providers:
                    row, preset = documented()[name], PROVIDER_PRESETS[name]
                    protocol = next(each for each in preset.protocols if each in TEXT_PROVIDERS)
                    public, upstream = row.model(protocol)
                    if name == "azure":  # the page states its model
                        (public,) = (model["id"] for model in _channel(case, name)["models"])
                    assert public in ids, name
                    path, body = call(protocol, public)
                    async with session.post(made.url + path, json=body) as response:
                        assert response.status == 200, (name, await response.text())
                    assert vendors.last.get("model", upstream) == upstream
        assert vendors.mistakes == []
        assert vendors.listed >= set(case.providers) - {"azure"}


def _channel(case: Lines, provider: str) -> Any:
    return next(each for each in yaml.safe_load(case.text)["channels"] if each["provider"] == provider)
