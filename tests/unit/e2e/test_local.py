"""Embedded model through the complete gateway: over HTTP, gRPC, an SDK, the typed client and the chat."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
import umg_client
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from openai import AsyncOpenAI

from tests.support.forked_umg_starts import Program, start_with_input
from tests.support.processes import Served, serve
from umg_grpc.v1 import pb, rpc

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France? Answer with one word."
TOKENS = 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with serve(tmp_path_factory.mktemp("local"), environment={"UMG_API_KEY": "sk-umg-local"}) as made:
        yield made


pytestmark = pytest.mark.asyncio(loop_scope="module")


def request() -> pb.GenerateRequest:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=QUESTION))])
    return pb.GenerateRequest(model=MODEL, messages=[message], max_output_tokens=TOKENS, temperature=0)


async def answer_over_http(served: Served) -> str:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "max_tokens": TOKENS, "temperature": 0}
    headers = {"authorization": f"Bearer {served.key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        answer = await response.json()
        assert answer["usage"]["completion_tokens"] > 0
        text = answer["choices"][0]["message"]["content"]
        assert isinstance(text, str)
        return text


async def answer_over_grpc(served: Served) -> str:
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        stub = rpc.GenerationServiceStub(channel)
        response = await stub.Generate(request(), metadata=(("authorization", f"Bearer {served.key}"),))
    assert response.usage.output_tokens > 0
    return "".join(part.text.text for part in response.candidates[0].message.parts)


async def answer_over_sdk(served: Served) -> str:
    async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key=served.key) as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=TOKENS,
            temperature=0,
            stream=True,
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def answer_over_client(served: Served) -> str:
    async with umg_client.connect(served.grpc, served.key) as client:
        message = umg_client.v1.Message(
            role=umg_client.v1.Role.USER,
            parts=[umg_client.v1.Part(text=umg_client.v1.TextPart(text=QUESTION))],
        )
        sent = umg_client.v1.GenerateRequest(model=MODEL, messages=[message], max_output_tokens=TOKENS, temperature=0)
        response = await client.generation.generate(sent)
        return "".join(part.text.text for part in response.candidates[0].message.parts if part.text)


async def answer_in_terminal(served: Served) -> str:
    arguments = ("chat", "--grpc", served.grpc, "--max-tokens", str(TOKENS), "--temperature", "0")
    program = Program(arguments, {**os.environ, "UMG_API_KEY": served.key})
    process = await start_with_input(f"{QUESTION}\n".encode(), program)
    out, _ = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode == 0
    return out.decode().strip()


async def test_every_face_gets_an_answer_of_the_model(served: Served) -> None:
    ways = [answer_over_http, answer_over_grpc, answer_over_sdk, answer_over_client, answer_in_terminal]
    answers = {way.__name__: (await way(served)).strip() for way in ways}
    assert "Paris" in answers["answer_over_http"]
    assert len(set(answers.values())) == 1, answers


async def test_reflection_is_enough_to_call_the_model(served: Served) -> None:
    """Call the model as grpcurl does: list the services, fetch their files, build the messages, call."""
    from google.protobuf import descriptor_pool, json_format, message_factory

    async with grpc.aio.insecure_channel(served.grpc) as channel:
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)

        async def query(**fields: str) -> reflection_pb2.ServerReflectionResponse:
            sent = iter([reflection_pb2.ServerReflectionRequest(**fields)])
            return await anext(aiter(reflection.ServerReflectionInfo(sent)))

        listed = await query(list_services="")
        names = {service.name for service in listed.list_services_response.service}
        assert {"umg.v1.GenerationService", "umg.v1.ModelService", "grpc.health.v1.Health"} <= names
        found = await query(file_containing_symbol="umg.v1.GenerationService")
        pool = descriptor_pool.DescriptorPool()
        files = [FileDescriptorProto.FromString(raw) for raw in found.file_descriptor_response.file_descriptor_proto]
        known: set[str] = set()
        while files:
            ready = [file for file in files if set(file.dependency) <= known | {""}]
            assert ready, [file.name for file in files]
            for file in ready:
                pool.Add(file)
                known.add(file.name)
                files.remove(file)
        method = pool.FindServiceByName("umg.v1.GenerationService").FindMethodByName("Generate")
        sent = message_factory.GetMessageClass(method.input_type)()
        question = {"role": "ROLE_USER", "parts": [{"text": {"text": QUESTION}}]}
        json_format.ParseDict({"model": MODEL, "messages": [question], "maxOutputTokens": "4"}, sent)
        call = channel.unary_unary(
            "/umg.v1.GenerationService/Generate",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        response = await call(sent, metadata=(("authorization", f"Bearer {served.key}"),))
        assert response.candidates[0].message.parts[0].text.text


async def test_tokens_arrive_one_by_one(served: Served) -> None:
    line_of_call = '"GenerationService/StreamGenerate","face":"chat","request_id":"one-by-one"'
    async with AsyncOpenAI(base_url=f"{served.http}/v1", api_key=served.key) as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Tell a long story about a lighthouse."}],
            max_tokens=100,
            temperature=0,
            stream=True,
            extra_headers={"x-request-id": "one-by-one"},
        )
        pieces = 0
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                pieces += 1
            if pieces == 1:  # received before the response is complete, so before the call's log line
                assert not [line for line in served.log if line_of_call in line]
        await served.until_logged(line_of_call)
    assert pieces > 10


async def test_several_requests_are_answered_concurrently(served: Served) -> None:
    answers = await asyncio.gather(*(answer_over_http(served) for _ in range(6)))
    assert all("Paris" in answer for answer in answers)


UNABLE = {
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "an image": {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://h/i.png"}}]}]
    },
}


@pytest.mark.parametrize("case", UNABLE, ids=str)
async def test_unsupported_features_of_the_local_model_are_refused(case: str, served: Served) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], **UNABLE[case]}
    headers = {"authorization": f"Bearer {served.key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        assert response.status == 400
        error = (await response.json())["error"]
    assert (MODEL in error["message"], bool(error["param"])) == (True, True)


async def test_a_killed_model_process_is_an_error_and_the_next_call_succeeds(served: Served) -> None:
    log = await served.until_logged("the local model is ready")
    pid = int(log.partition('"pid":')[2].partition(",")[0])
    headers = {"authorization": f"Bearer {served.key}"}
    messages = [{"role": "user", "content": "Tell a long story about a lighthouse."}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 2000, "stream": True}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response:
            assert response.status == 200
            seen = await response.content.readuntil(b"\n\n")
            os.kill(pid, signal.SIGKILL)
            seen += await response.content.read()
        last = [line for line in seen.split(b"\n") if line.startswith(b"data: ")][-1]
        assert last.startswith(b'data: {"error":')
        assert b"[DONE]" not in seen
        assert b"127.0.0.1" not in last
    answers = await asyncio.gather(*(answer_over_http(served) for _ in range(4)))
    assert all("Paris" in answer for answer in answers)


async def test_the_printed_curl_line_works_when_pasted(served: Served) -> None:
    # The answer has no limit in the printed line, and a small model can go on for thousands of tokens.
    limited = served.curl.replace('"stream": true', f'"stream": true, "max_tokens": {TOKENS}')
    assert limited != served.curl
    process = await asyncio.create_subprocess_shell(
        f"{limited} -sS",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=served.environment,
    )
    out, err = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode == 0, err
    assert out.endswith(b"data: [DONE]\n\n")
    assert out.count(b"data: {") > 3


async def test_workers_share_one_local_model(tmp_path: Path) -> None:
    environment = {"UMG_API_KEY": "sk-umg-local"}
    async with serve(tmp_path, "--workers", "2", environment=environment) as served:
        answers = await asyncio.gather(*(answer_over_http(served) for _ in range(4)))
        assert all("Paris" in answer for answer in answers)
        assert len([line for line in served.log if "the local model is ready" in line]) == 1
        assert await served.stop() == 0
