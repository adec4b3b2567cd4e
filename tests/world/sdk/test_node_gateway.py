"""The JavaScript SDKs, unmodified, against the gateway in front of strict providers of their own and other formats."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.gateways import KEY, Running, running
from tests.support.providers.scenarios import TEXT
from tests.support.providers.strict_providers import KEY as PROVIDER_KEY
from tests.support.providers.strict_providers import Provider, provider
from tests.support.scenario_cases import SDK_CASES, can_express
from tests.world.agents.document import documented
from tests.world.sdk.node_runner import NODE, Job, Node
from tests.world.sdk.node_sdks import BREAKS, FAILURES, LEAVES, SDKS, WAYS, Sdk, jobs

CONFIG = """
channels:
  - {{name: main, protocols: [{format}], base_url: "{url}", api_key: {key}, models: [m, gemini-3-pro],
     quirks: {{web_search: true, reasoning_content: true, custom_tools: true, developer: true, rejects: []}}}}
"""


@dataclass(frozen=True)
class Gateway:
    url: str
    upstream: Provider


@asynccontextmanager
async def gateway(upstream: str, data: Path) -> AsyncGenerator[Gateway, None]:
    """Yield a gateway with one channel, to a provider of a format."""
    async with provider(upstream) as server:
        config = CONFIG.format(format=upstream, url=server.base_url, key=PROVIDER_KEY)
        async with running(config, data) as served:
            yield Gateway(served.url, server)


@dataclass(frozen=True)
class Pair:
    sdk: Sdk
    upstream: str

    @property
    def id(self) -> str:
        return f"{self.sdk.id} to {self.upstream}"


OTHERS = {
    "openai chat": ("chat", "messages"),
    "openai responses": ("responses", "native"),
    "openai responses, kept": ("messages",),
    "azure chat": ("chat",),
    "azure responses": ("chat",),
    "anthropic": ("messages", "responses"),
    "google": ("native", "chat"),
    "ai openai": ("native",),
    "ai openai-chat": ("responses",),
    "ai openai-compatible": ("messages",),
    "ai anthropic": ("chat",),
    "ai google": ("messages",),
}
PAIRS = [Pair(sdk, upstream) for sdk in SDKS for upstream in OTHERS[sdk.id]]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
async def test_the_sdk_shows_the_providers_message(pair: Pair, node: Node, tmp_path: Path) -> None:
    # a native provider's search has no URLs, so that all SDKs take the sources of the text, with their titles
    sdk = replace(pair.sdk, titled=True) if pair.upstream == "native" else pair.sdk
    cases = [case for case in SDK_CASES if case.id not in sdk.without and can_express(sdk.format, case)]
    async with gateway(pair.upstream, tmp_path) as served:
        found = await node.run(sdk.script, jobs(cases), root=served.url, key=KEY, model=sdk.model, **sdk.options)
        assert served.upstream.refusals == []
    wrong = []
    for case in cases:
        for way in WAYS:
            answer = found[f"{case.id} {way}"]
            shown = case.expected_by_sdk(sdk.format, pair.upstream, stream=way == "streamed")
            wanted, second = sdk.shows(case, shown), answer.get("second", {}).get("text", "")
            if answer.get("shown") != wanted or second != sdk.after(case):
                wrong.append((case.id, way, answer, wanted))
    assert wrong == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
async def test_failures_are_the_sdks_own_errors_and_leaving_stops_the_provider(
    pair: Pair, node: Node, tmp_path: Path
) -> None:
    sdk = pair.sdk
    selected = [job for case in FAILURES for job in case.jobs()]
    async with gateway(pair.upstream, tmp_path) as served:
        found = await node.run(
            sdk.script, [*selected, BREAKS, LEAVES], root=served.url, key=KEY, model=sdk.model, **sdk.options
        )
        await asyncio.wait_for(served.upstream.left.wait(), 60)
    for case in FAILURES:
        for way in WAYS:
            error = found[f"{case.id} {way}"].get("error")
            assert error is not None, (case.id, way, found)
            assert (error["status"], error["class"]) == (case.status, sdk.error or case.error), (case.id, way, error)
    assert "the model fell over" in found["breaks"]["error"]["message"]
    if sdk.script == "openai.mjs" and sdk.format == "responses":  # the event `response.failed` comes before the error
        assert found["breaks"]["error"]["failed"] == [found["breaks"]["error"]["message"]]
    seen = found["leaves"]["shown"]["seen"]
    assert seen
    assert TEXT.startswith(seen)


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.id)
async def test_the_sdk_reads_arguments_that_a_chat_model_indents(sdk: Sdk, node: Node, tmp_path: Path) -> None:
    (case,) = [case for case in SDK_CASES if case.id == "indented"]
    selected = [Job(way, case.request, way == "streamed") for way in WAYS]
    async with gateway("chat", tmp_path) as served:
        found = await node.run(sdk.script, selected, root=served.url, key=KEY, model=sdk.model, **sdk.options)
        assert served.upstream.refusals == []
    for way in WAYS:
        shown = sdk.shows(case, case.expected_by_sdk(sdk.format, "chat", stream=way == "streamed"))
        assert found[way].get("shown") == shown, found[way]


async def test_a_streamed_response_echoes_an_indented_body(node: Node, tmp_path: Path) -> None:
    sdk = next(sdk for sdk in SDKS if sdk.id == "openai responses")
    cases = [case for case in SDK_CASES if case.id in ("tools", "structured")]
    async with gateway("chat", tmp_path) as served:
        found = await node.run(
            sdk.script, jobs(cases), root=served.url, key=KEY, model=sdk.model, indents=True, **sdk.options
        )
    for case in cases:
        shown = sdk.shows(case, case.expected_by_sdk("responses", "chat", stream=True))
        assert found[f"{case.id} streamed"].get("shown") == shown, found


@pytest.mark.asyncio(loop_scope="module")
async def test_the_documented_lines_of_the_ai_sdk_print_an_answer(sandbox: Running, node: Node) -> None:
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), "--input-type=module", "--eval", documented("AI SDK", sandbox.url)),
        cwd=node.root,
        env={**os.environ, "UMG_API_KEY": sandbox.key},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 180)
    assert "simulated answer" in out.decode()
