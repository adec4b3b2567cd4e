"""Calls over HTTP through a running gateway to the judged vendors have the outcomes of the runner without sockets."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.vendors import gateway, sources
from tests.pairs.vendors.features import BASES, TEXT_FEATURES
from tests.pairs.vendors.runner import STREAMED, Result, cells, models, run
from tests.pairs.vendors.server import Vendors
from tests.support.gateways import Running, running
from tests.support.providers.server import serve_provider
from tests.world.sdk.runner import installed_or_skipped

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLS = 60
LEFT_OUT = ("vertex", "ollama", "vllm")
"""Vendors without a host of their own, or with the model ids of another one."""
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
SERVED = ("kept", "moved", "left out")


@dataclass
class Setting:
    """A gateway, and the vendors behind it."""

    gateway: Running
    session: aiohttp.ClientSession
    vendors: Vendors


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setting(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Setting, None]:
    """Yield one gateway with a channel to each vendor, at the vendor's own host, through the server as proxy."""
    urls = {vendor: gateway.base_url(vendor) for vendor in dict.fromkeys(model.vendor for model in models())}
    urls = {vendor: url for vendor, url in urls.items() if vendor not in LEFT_OUT}
    async with AsyncExitStack() as stack:
        addresses = {vendor: [url, *gateway.base_urls(vendor).values()] for vendor, url in urls.items()}
        hosts = {urlsplit(url).netloc: vendor for vendor, listed in addresses.items() for url in listed}
        vendors = await stack.enter_async_context(serve_provider(Vendors(hosts=hosts)))
        config = "channels:\n" + "".join(
            f"  - name: {vendor}\n    provider: {vendor}\n    api_key: sk-vendor\n"
            f"    base_url: {_plain(url)}\n    proxy: {vendors.url}\n    discover: false\n"
            f"    base_urls: {json.dumps({name: _plain(at) for name, at in gateway.base_urls(vendor).items()})}\n"
            for vendor, url in urls.items()
        )
        running_gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("vendors")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Setting(running_gateway, session, vendors)


@pytest.fixture(scope="module")
def sample() -> list[Result]:
    """Return outcomes from all over the matrix, without the wrong ones."""
    installed_or_skipped(sources.cost_map)
    installed_or_skipped(sources.installed)
    chosen = [model for model in models() if model.vendor not in LEFT_OUT and not model.judged_as]
    table = list(cells(chosen))
    starts = range(0, len(table), len(table) // CALLS)[:CALLS]
    return [next(filter(is_right, (run(*cell) for cell in table[start:]))) for start in starts]


def _plain(url: str) -> str:
    return url.replace("https:", "http:")


def is_right(result: Result) -> bool:
    return result.outcome in SERVED and not result.wrong


async def test_calls_over_http_have_the_outcomes_of_the_runner(sample: list[Result], setting: Setting) -> None:
    differing = {}
    for result in sample:
        body = BASES[result.face] | TEXT_FEATURES[result.feature].requests[result.face]
        if result.face == "native":
            verb = "streamGenerateContent?alt=sse" if result.feature in STREAMED else "generateContent"
            path = f"/v1beta/models/{quote(result.model.id, safe='')}:{verb}"
        else:
            path, body = PATHS[result.face], {"model": result.model.id, **body}
        url, headers = setting.gateway.url + path, setting.gateway.headers
        async with setting.session.post(url, json=body, headers=headers) as response:
            text, dropped = await response.text(), response.headers.get("x-umg-dropped", "")
        if response.status != 200 or bool(dropped) != bool(result.dropped):
            differing[result.id] = (response.status, dropped, result.dropped, text[:200])
    assert differing == {}
    assert setting.vendors.refusals == []
    assert len(setting.vendors.received) == CALLS
