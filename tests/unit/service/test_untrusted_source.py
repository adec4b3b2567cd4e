"""Fields beside the source document: they have no effect if the caller is connected over a socket."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from tests.support.callers.chat_callers import GrpcChatCaller, chat_caller
from tests.support.gateways import KEY
from tests.support.providers.chat_faults import TEXT, Provider, provider
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb

BODY = json.dumps({"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}).encode()
CONFIG = "channels: [{{name: main, protocols: [chat], base_url: '{base_url}', auth: {{kind: none}}, models: [plain]}}]"
METADATA = (("authorization", f"Bearer {KEY}"),)


@pytest_asyncio.fixture
async def upstream() -> AsyncGenerator[Provider, None]:
    async with provider() as state:
        yield state


@pytest_asyncio.fixture
async def gateway(upstream: Provider, tmp_path: Path) -> AsyncGenerator[GrpcChatCaller, None]:
    async with chat_caller("grpc", CONFIG.format(base_url=upstream.base_url), tmp_path) as made:
        assert isinstance(made, GrpcChatCaller)
        yield made


async def test_only_headers_of_the_format_reach_the_provider(gateway: GrpcChatCaller, upstream: Provider) -> None:
    headers = {"host": "evil.example", "cookie": "a=b", "authorization": "Bearer mine", "openai-beta": "x=v1"}
    source = pb.SourceDocument(format="chat", body=BODY, headers=headers)
    await gateway.generation.Generate(pb.GenerateRequest(source=source), metadata=METADATA)
    sent = upstream.received[0].headers
    assert sent["openai-beta"] == "x=v1"
    assert sent["host"].startswith("127.0.0.1")
    assert not {"cookie", "authorization"} & set(sent)


async def test_a_header_that_no_header_can_be_is_refused(gateway: GrpcChatCaller) -> None:
    source = pb.SourceDocument(format="chat", body=BODY, headers={"openai-beta": "a\r\nb: c"})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.generation.Generate(pb.GenerateRequest(source=source), metadata=METADATA)
    assert from_rpc(caught.value).metadata == {"field": "openai-beta"}


async def test_canonical_fields_that_contradict_the_source_are_ignored(
    gateway: GrpcChatCaller, upstream: Provider
) -> None:
    request = pb.GenerateRequest(model="other", temperature=2, source=pb.SourceDocument(format="chat", body=BODY))
    response = await gateway.generation.Generate(request, metadata=METADATA)
    assert (response.model, upstream.bodies[0]) == ("plain", json.loads(BODY))


REFUSED = {
    "a format that there is not": (pb.SourceDocument(format="soap", body=BODY), "source.format"),
    "no format": (pb.SourceDocument(body=BODY), "source.format"),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_an_undecodable_source_is_refused(case: str, gateway: GrpcChatCaller) -> None:
    source, field = REFUSED[case]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.generation.Generate(pb.GenerateRequest(source=source), metadata=METADATA)
    assert from_rpc(caught.value).metadata == {"field": field}


async def test_a_request_of_too_many_messages_is_refused_by_its_field(gateway: GrpcChatCaller) -> None:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
    request = pb.GenerateRequest(model="plain", messages=[message] * 20_001)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.generation.Generate(request, metadata=METADATA)
    assert from_rpc(caught.value).metadata == {"field": "messages"}


async def test_a_large_body_does_not_keep_other_callers_waiting(gateway: GrpcChatCaller) -> None:
    messages = [{"role": "user", "content": "Hi"}] * 15_000
    body = json.dumps({"model": "plain", "messages": messages, "user": "x" * (8 << 20)}).encode()
    large = asyncio.create_task(gateway.call(body))
    while not large.done():
        assert (await gateway.call(BODY)).text == TEXT
    assert (await large).text == TEXT


@pytest.mark.parametrize("key", [KEY, "sk-umg-wrong"])
async def test_bytes_that_are_no_message_are_refused_in_the_catalogues_words(key: str, gateway: GrpcChatCaller) -> None:
    call = gateway.channel.unary_unary("/umg.v1.GenerationService/Generate")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"\xff\xff\xff", metadata=(("authorization", f"Bearer {key}"),))
    assert from_rpc(caught.value).name == ("MALFORMED_BODY" if key == KEY else "INVALID_KEY")


@pytest.mark.parametrize(
    "case",
    [
        ("messages", {"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}),
        ("responses", {"model": "plain", "input": "Hi"}),
        ("native", {"generateContentRequest": {"contents": [{"parts": [{"text": "Hi"}]}]}}),
    ],
    ids=lambda case: case[0],
)
async def test_a_counting_body_is_decoded_as_one(gateway: GrpcChatCaller, case: tuple[str, dict[str, object]]) -> None:
    name, body = case
    source = pb.SourceDocument(format=name, body=json.dumps(body).encode())
    request = pb.CountTokensRequest(request=pb.GenerateRequest(model="plain", source=source))
    counted = await gateway.generation.CountTokens(request, metadata=METADATA)
    assert 0 < counted.input_tokens < 20


async def test_the_new_messages_of_a_thread_are_not_counted_alone(gateway: GrpcChatCaller) -> None:
    request = pb.GenerateRequest(model="plain", thread=pb.Thread(previous_response_id="msg_1"))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.generation.CountTokens(pb.CountTokensRequest(request=request), metadata=METADATA)
    assert from_rpc(caught.value).name == "UNSUPPORTED_FIELD"
