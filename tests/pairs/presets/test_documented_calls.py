"""Calls of each preset as its provider's documents have them: URL, header of the key, id of the model.

The only change of a preset's channel is `http` in place of `https`, so that the calls pass a proxy that stands for all
vendors. The table of documented calls does not come from the presets; a part of it is confirmed by LiteLLM's package.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, FormData, web

from tests.pairs.presets.strict_vendors import DocumentedCalls, StrictVendors, documented, sourced_variables
from tests.support.gateways import Running, running
from tests.support.litellm_wheel import quoted_names, text_of
from tests.support.providers.every_operation import CHAT
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from tests.support.providers.short_responses import MESSAGE
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.core.inserted_turn_texts import marked
from umg_grpc.wire.embedding_formats import EMBEDDING_UPSTREAMS
from umg_grpc.wire.rerank import RERANK_UPSTREAMS

CLAUDE_CODE = Path(__file__).parents[2] / "unit" / "wire" / "messages" / "claude_code" / "request.json"
"""Request that Claude Code sent."""
TURNS = [{"role": "user", "content": "Hi"}]
CONTENT = {"role": "user", "parts": [{"text": "Hi"}]}
VIDEOS = {"vidA", "vidB", "vidC", "vidD", "vidE", "vidF", "vidG"}


FIRST_ALONE = {"deepseek", "zai", "bigmodel", "minimax", "minimax-cn"} | {
    f"dashscope{place}" for place in ("", "-intl", "-us", "-workspace")
}
"""Presets whose messages refuse instructions between turns."""
TAKES_LINES = {"anthropic", "vertex-anthropic"}
"""Presets whose providers read the lines that Claude Code puts in front of the system prompt."""


def as_user(turn: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a turn of messages; one with instructions as a marked turn of the user."""
    return {"role": "user", "content": marked(turn["content"])} if turn["role"] == "system" else turn


def call(protocol: str, model: str) -> tuple[str, Mapping[str, Any]]:
    """Return the path and the body of a caller in the format of a protocol, or of one that is translated to it."""
    match protocol:
        case "chat" | "converse":
            return "/v1/chat/completions", {"model": model, "messages": TURNS}
        case "responses":
            return "/v1/responses", {"model": model, "input": "Hi"}
        case "messages":
            return "/v1/messages", {"model": model, "max_tokens": 8, "messages": TURNS}
        case "native":
            return f"/v1beta/models/{model}:generateContent", {"contents": [CONTENT]}
        case "native_embeddings":
            return f"/v1beta/models/{model}:embedContent", {"content": {"parts": [{"text": "Hi"}]}}
        case "embeddings" | "vertex_embeddings" | "bedrock_embeddings":
            return "/v1/embeddings", {"model": model, "input": "Hi"}
        case "moderations":
            return "/v1/moderations", {"model": model, "input": "Hi"}
        case "speech" | "native_speech":
            return "/v1/audio/speech", {"model": model, "input": "Hi", "voice": "alloy"}
        case "transcriptions":
            return "/v1/audio/transcriptions", {"model": model, "file": b"RIFF"}
        case "rerank" | "bedrock_rerank":
            return "/v1/rerank", {"model": model, "query": "Hi", "documents": ["Hello"]}
        case _ if protocol in VIDEOS:
            return "/v1/video/generations", {"model": model, "prompt": "a cat"}
        case "dashscope_images":
            turn = {"role": "user", "content": [{"text": "a cat"}]}
            return "/v1/images/generations", {"model": model, "input": {"messages": [turn]}}
        case _:
            return "/v1/images/generations", {"model": model, "prompt": "a cat"}


def form(body: Mapping[str, Any]) -> FormData:
    """Return a body with a file as a form."""
    made = FormData({"model": body["model"]})
    made.add_field("file", body["file"], filename="a.wav", content_type="audio/wav")
    return made


def plain(url: str) -> str:
    """Return a URL of a preset with the parts of an account filled in, and without TLS."""
    return re.sub(r"<([a-z]+)>", r"my-\1", url).replace("https:", "http:")


def channel(preset: Provider, key: str, proxy: str) -> str:
    """Return the channel of a preset as YAML. A token stands for the one that a service account would get."""
    urls = ", ".join(f"{protocol}: '{plain(url)}'" for protocol, url in preset.base_urls.items())
    token = ", auth: {kind: bearer}" if preset.uses_service_account else ""
    return (
        f"  - {{provider: {preset.name}, base_url: '{plain(preset.base_url)}', base_urls: {{{urls}}},"
        f" api_key: {key}, proxy: '{proxy}'{token}}}\n"
    )


def batches(presets: Sequence[Provider]) -> list[list[Provider]]:
    """Return the presets in lists in which no two have the same pattern of models, so that each call has one channel."""
    found: list[list[Provider]] = []
    for preset in presets:
        ids = {model.id for model in preset.models}
        free = (batch for batch in found if not any(ids & {model.id for model in each.models} for each in batch))
        if (batch := next(free, None)) is None:
            found.append(batch := [])
        batch.append(preset)
    return found


def calls(batch: Sequence[Provider]) -> Iterator[tuple[DocumentedCalls, str]]:
    for preset in batch:
        row = documented()[preset.name]
        yield from ((row, protocol) for protocol in preset.protocols)


async def call_all(made: Running, batch: Sequence[Provider]) -> dict[tuple[str, str], tuple[int, str]]:
    """Call each preset of a batch in each of its protocols. Return the statuses and bodies."""
    found = {}
    async with ClientSession(headers=made.headers) as session:
        for row, protocol in calls(batch):
            path, body = call(protocol, row.model(protocol)[0])
            sent = {"data": form(body)} if "file" in body else {"json": body}
            async with session.post(made.url + path.replace("{", "%7B"), **sent) as response:
                found[row.preset, protocol] = response.status, await response.text()
    return found


def test_each_preset_has_documented_calls_of_its_protocols() -> None:
    assert documented().keys() == PROVIDER_PRESETS.keys()
    for row in documented().values():
        assert row.source
        assert row.sources.keys() <= row.calls.keys()
        assert set(PROVIDER_PRESETS[row.preset].protocols) == row.calls.keys(), row.preset


async def test_each_preset_lists_the_models_of_its_provider(tmp_path: Path) -> None:
    """Without waiting for it, and the models that its list lacks are served too."""
    presets = [PROVIDER_PRESETS[name] for name in documented()]
    async with serve_provider(StrictVendors()) as vendors:
        ids = set[str]()
        for number, batch in enumerate(batches(presets)):
            lines = "".join(channel(preset, documented()[preset.name].key, vendors.url) for preset in batch)
            async with running(f"channels:\n{lines}", tmp_path / str(number)) as made:
                await made.service._discovery._first.wait()
                async with ClientSession(headers=made.headers) as session, session.get(f"{made.url}/v1/models") as got:
                    ids |= {model["id"] for model in (await got.json())["data"]}
    lists = {preset.name for preset in presets if preset.lists_models}
    assert not lists - vendors.listed
    assert vendors.listed <= lists
    unlisted = {
        name for name in lists & vendors.listed if not {each for each, _ in documented()[name].models.values()} & ids
    }
    assert unlisted == set()


async def test_each_preset_calls_its_provider_as_documented(tmp_path: Path) -> None:
    presets = [PROVIDER_PRESETS[name] for name in documented()]
    async with serve_provider(StrictVendors()) as vendors:
        answers = dict[tuple[str, str], tuple[int, str]]()
        for number, batch in enumerate(batches(presets)):
            lines = "".join(channel(preset, documented()[preset.name].key, vendors.url) for preset in batch)
            async with running(f"channels:\n{lines}", tmp_path / str(number)) as made:
                answers |= await call_all(made, batch)
    assert vendors.mistakes == []
    assert vendors.accepted == {(row.preset, protocol) for row in documented().values() for protocol in row.calls}
    texts = {*TEXT_UPSTREAMS, *EMBEDDING_UPSTREAMS, *RERANK_UPSTREAMS}
    assert {key for key, (status, _) in answers.items() if status != 200 and key[1] in texts} == set()


async def test_claude_code_is_answered_in_its_own_format_by_each_provider_that_has_it(tmp_path: Path) -> None:
    rows = [row for row in documented().values() if "messages" in row.calls]
    (batch, *_) = batches([PROVIDER_PRESETS[row.preset] for row in rows])
    recorded = json.loads(CLAUDE_CODE.read_text())
    line, *others = recorded["system"]
    assert line["text"].startswith("x-anthropic-")
    async with serve_provider(StrictVendors()) as vendors:
        lines = "".join(channel(preset, documented()[preset.name].key, vendors.url) for preset in batch)
        async with running(f"channels:\n{lines}", tmp_path) as made, ClientSession(headers=made.headers) as session:
            for preset in batch:
                model, upstream = documented()[preset.name].model("messages")
                body = recorded | {"model": model, "stream": False}
                async with session.post(f"{made.url}/v1/messages", json=body) as response:
                    assert await response.json() == MESSAGE | {"model": model}, preset.name
                sent = vendors.last
                assert sent.get("model", upstream) == upstream  # some have it in the path
                assert sent["system"] == ([line, *others] if preset.name in TAKES_LINES else others), preset.name
                assert sent["tools"] == recorded["tools"], preset.name
                has_turns = preset.name not in FIRST_ALONE
                assert sent["messages"] == [each if has_turns else as_user(each) for each in recorded["messages"]]
    assert vendors.accepted == {(preset.name, "messages") for preset in batch}


@dataclass
class AnyVendor(FakeProvider):
    """Vendor behind a proxy that answers any model, in the format of the URL."""

    urls: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        self.urls.append(request.raw_path)
        return web.json_response(MESSAGE if request.raw_path.endswith("/messages") else CHAT)


@dataclass(frozen=True)
class ClaudeOnly:
    """Model of a provider that has messages for Claude alone, and the end of the URL of a call of messages."""

    id: str
    preset: str
    model: str
    end: str


CLAUDE_ONLY = [
    ClaudeOnly("Claude at Databricks", "databricks", "databricks-claude-opus-5", "/anthropic/v1/messages"),
    ClaudeOnly(
        "another model at Databricks", "databricks", "databricks-gpt-5-4", "/serving-endpoints/chat/completions"
    ),
    ClaudeOnly("Claude at Poe", "poe", "Claude-Opus-4.7", "/v1/messages"),
    ClaudeOnly("another model at Poe", "poe", "GPT-5.4", "/v1/chat/completions"),
]


@pytest.mark.parametrize("case", CLAUDE_ONLY, ids=lambda case: case.id)
async def test_messages_of_other_models_are_translated_where_a_provider_has_them_for_claude_alone(
    case: ClaudeOnly, tmp_path: Path
) -> None:
    async with serve_provider(AnyVendor()) as vendor:
        text = "channels:\n" + channel(PROVIDER_PRESETS[case.preset], "k", vendor.url).replace(
            "api_key", "discover: false, api_key"
        )
        async with running(text, tmp_path) as made, ClientSession(headers=made.headers) as session:
            body = {"model": f"{case.preset}/{case.model}", "max_tokens": 8, "messages": TURNS}
            async with session.post(f"{made.url}/v1/messages", json=body) as response:
                assert response.status == 200, await response.text()
    (url,) = vendor.urls
    assert url.endswith(case.end)


@pytest.mark.parametrize("row", documented().values(), ids=lambda row: row.preset)
def test_a_documented_call_is_confirmed_by_the_text_of_another_gateway(row: DocumentedCalls) -> None:
    for member, text in row.litellm:
        assert text in text_of(member)


def test_each_variable_of_a_key_is_one_of_another_gateway_or_has_a_source() -> None:
    variables = {name for preset in PROVIDER_PRESETS.values() for names in preset.keys for name in names.split(":")}
    assert variables <= {*quoted_names(), *(row.name for row in sourced_variables())}
    assert all(row.source for row in sourced_variables())
