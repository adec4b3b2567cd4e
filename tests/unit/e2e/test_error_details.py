"""Details of calls over gRPC: the reason and the request id of a failure, the dropped fields of a response."""

from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from tests.support.gateways import SANDBOX, channel, running
from tests.support.providers.server import RecordingProvider, serve_provider
from umg_grpc.base.grpc_status import DETAILS_KEY
from umg_grpc.v1 import pb, rpc


async def test_an_error_has_its_reason_and_the_request_id_in_its_details(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as opened:
        metadata = (("authorization", f"Bearer {gateway.key}"), ("x-request-id", "mine-1"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.GenerationServiceStub(opened).Generate(pb.GenerateRequest(model="none"), metadata=metadata)
    [encoded] = [value for key, value in caught.value.trailing_metadata() or () if key == DETAILS_KEY]
    assert isinstance(encoded, bytes)
    reason, request = error_details_pb2.ErrorInfo(), error_details_pb2.RequestInfo()
    details = status_pb2.Status.FromString(encoded).details
    assert any(detail.Unpack(reason) for detail in details)
    assert any(detail.Unpack(request) for detail in details)
    assert reason.reason == "MISSING_FIELD"
    assert request.request_id == dict(caught.value.trailing_metadata() or ())["x-request-id"]


async def test_an_answer_lists_the_fields_that_its_provider_was_not_sent(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path / "inner") as inner:
        config = "channels:\n" + channel("outer", "messages", f"{inner.url}/v1", "m", "famG-2.5-flash")
        async with running(config, tmp_path / "outer") as gateway, grpc.aio.insecure_channel(gateway.grpc) as opened:
            stub = rpc.GenerationServiceStub(opened)
            metadata = (("authorization", f"Bearer {gateway.key}"),)
            request = pb.GenerateRequest(model="m", seed=7)
            request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
            call = stub.Generate(request, metadata=metadata)
            assert list((await call).dropped_fields) == ["seed"]
            assert dict(await call.initial_metadata())["x-umg-dropped"] == "seed"
            streamed = stub.StreamGenerate(pb.StreamGenerateRequest(request=request), metadata=metadata)
            events = [event async for message in streamed for event in message.events]
    [started] = [event.started for event in events if event.HasField("started")]
    assert list(started.dropped_fields) == ["seed"]


async def test_an_answer_lists_its_parts_that_the_format_of_a_grpc_caller_cannot_express(tmp_path: Path) -> None:
    content = [{"type": "new_block", "a": 1}, {"type": "text", "text": "Hi"}]
    answer = {"type": "message", "id": "r", "content": content, "stop_reason": "end_turn"}
    async with serve_provider(RecordingProvider()) as provider:
        provider.respond = lambda _: answer
        config = "channels:\n" + channel("outer", "messages", provider.url, "m", "theirs")
        async with running(config, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as opened:
            request = pb.GenerateRequest(model="m")
            request.source.format = "chat"
            request.source.body = b'{"model": "m", "seed": 7, "messages": [{"role": "user", "content": "Hi"}]}'
            metadata = (("authorization", f"Bearer {gateway.key}"),)
            call = rpc.GenerationServiceStub(opened).Generate(request, metadata=metadata)
            assert list((await call).dropped_fields) == ["seed", "answer.new_block"]
            assert dict(await call.initial_metadata())["x-umg-dropped"] == "seed, answer.new_block"
