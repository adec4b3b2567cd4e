"""Warnings about models that their channel cannot serve: each names the field, and the protocols that can."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import parse
from umg_grpc.routing import unserved_models

GROQ, OWN = "provider: groq, api_key: k", "protocols: [chat], base_url: 'http://127.0.0.1:1'"
ELSEWHERE = "which the protocols of channel c (chat) cannot: add"


@dataclass(frozen=True)
class Case:
    """Channel, and the warnings about it."""

    id: str
    channel: str
    warnings: tuple[str, ...] = ()
    more: str = ""


CASES = [
    Case("texts", f"{OWN}, models: [gpt-5, claude-opus-4-5, llama9, mine]"),
    Case("an unknown id", f"{GROQ}, models: [mine]"),
    Case("patterns", f"{OWN}, models: ['text-embedding-*', '*']"),
    Case("vectors", f"{OWN}, models: [gpt-5, text-embedding-3-small]", (f"channels[0].models[1]: `text-embedding-3-small` is known to embed texts, {ELSEWHERE} one of `embeddings`, `native_embeddings`, `vertex_embeddings`, `bedrock_embeddings`, or state the `operations` of the model",)),
    Case("by the id of the provider", f"{OWN}, models: [{{id: ranks, upstream: rerank-v3.5}}]", (f"channels[0].models[0]: `rerank-v3.5` is known to rerank documents, {ELSEWHERE} `rerank` or `bedrock_rerank`, or state the `operations` of the model",)),
    Case("images of a preset without them", "name: c, provider: mistral, api_key: k, models: [dall-e-3]", ("channels[0].models[0]: `dall-e-3` is known to make images, which the protocols of channel c (chat, embeddings, moderations, speech, transcriptions) cannot: add one of `images`, `umg_images`, `native_images`, `ark_images`, `dashscope_images`, or state the `operations` of the model",)),
    Case("sessions", f"{OWN}, models: [gpt-realtime]", ("channels[0].models[0]: `gpt-realtime` is known for operations that the gateway does not serve; remove it",)),
    Case("texts for vectors alone", "protocols: [embeddings], base_url: 'http://127.0.0.1:1', models: [famO-5]", ("channels[0].models[0]: `famO-5` is known to generate text, which the protocols of channel c (embeddings) cannot: add one of `chat`, `responses`, `messages`, `native`, `converse`, or state the `operations` of the model",)),
    Case("one of two operations", f"{OWN}, models: [gemini-3-pro-image]"),
    Case("operations of the operator", f"{OWN}, models: [my-embed]", more="models: {my-embed: {capabilities: {operations: [generate]}}}\n"),
    Case("the simulated provider", "protocols: [sandbox], models: [text-embedding-3-small, whisper-1]"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_that_its_channel_cannot_serve_is_named_with_the_field(case: Case) -> None:
    name = "" if "name: " in case.channel else "name: c, "
    config = parse(f"channels:\n- {{{name}{case.channel}}}\n{case.more}", "umg.yaml", {})
    assert tuple(unserved_models(config)) == case.warnings
