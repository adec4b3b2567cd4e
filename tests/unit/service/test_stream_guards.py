"""Guards of streamed responses: they read the completed messages in windows, and yield the messages for the caller."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from tests.support.gateways import KEY, Running, running
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.service.operations.generate.text_pipeline import GenerationPipeline
from umg_grpc.service.operations.generate.text_request_encoder import GenerationCall
from umg_grpc.service.operations.image.image_call import AdmittedImages
from umg_grpc.service.operations.image.image_pipeline import ImagePipeline
from umg_grpc.service.pipeline.steps import GUARD_STREAM, Step
from umg_grpc.service.pipeline.stream_pipeline import StreamStep
from umg_grpc.v1 import pb, rpc

SIMULATED = """
channels:
  - {name: simulated, protocols: [sandbox], models: [m, imgA-4-0-250828], pace: 0}
"""
METADATA = [("authorization", f"Bearer {KEY}")]
WINDOW = 2
Stream = AsyncGenerator[pb.StreamGenerateResponse, None]
Images = AsyncGenerator[pb.StreamGenerateImageResponse, None]


class GuardedText(GenerationPipeline):
    """Pipeline of text with a guard that holds back windows of two messages, and refuses one word."""

    refused = "\0"
    windows = 0

    def _stream_steps(self) -> Mapping[Step, StreamStep[GenerationCall, pb.StreamGenerateResponse]]:
        return {GUARD_STREAM: self._guard}

    async def _guard(self, admitted: GenerationCall, messages: Stream) -> Stream:
        held: list[pb.StreamGenerateResponse] = []
        async with aclosing(messages):
            async for message in messages:
                held.append(message)
                if len(held) == WINDOW:
                    for passed in self._passed(held):
                        yield passed
                    held.clear()
        for passed in self._passed(held):
            yield passed

    def _passed(self, held: list[pb.StreamGenerateResponse]) -> list[pb.StreamGenerateResponse]:
        self.windows += 1
        if self.refused in text_of(held):
            raise UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, "the guard refuses the response")
        return held


class GuardedImages(ImagePipeline):
    """Pipeline of images with a guard that sees each message after its completion."""

    models: tuple[str, ...] = ()

    def _stream_steps(self) -> Mapping[Step, StreamStep[AdmittedImages, pb.StreamGenerateImageResponse]]:
        return {GUARD_STREAM: self._guard}

    async def _guard(self, admitted: AdmittedImages, messages: Images) -> Images:
        async with aclosing(messages):
            async for message in messages:
                self.models += tuple(event.started.model for event in message.events if event.HasField("started"))
                yield message


def text_of(messages: list[pb.StreamGenerateResponse]) -> str:
    """Return the text of the messages of a stream."""
    return "".join(event.text_delta for message in messages for event in message.events)


@asynccontextmanager
async def guarded_text(tmp_path: Path) -> AsyncIterator[tuple[Running, GuardedText, grpc.aio.Channel]]:
    """Run a gateway whose text streams are guarded; yield it, the pipeline, and a channel to it."""
    async with running(SIMULATED, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        servicer = gateway.service._generation
        own = servicer._pipeline
        servicer._pipeline = pipeline = GuardedText(own._context, servicer._memory, own._stored_prompts)
        yield gateway, pipeline, channel


async def streamed(channel: grpc.aio.Channel, prompt: str) -> list[pb.StreamGenerateResponse]:
    """Return the messages of the stream that answers a prompt."""
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=prompt))])
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="m", messages=[message]))
    return [each async for each in rpc.GenerationServiceStub(channel).StreamGenerate(request, metadata=METADATA)]


async def test_a_guard_sees_a_text_in_windows_and_lets_it_pass_whole(tmp_path: Path) -> None:
    async with guarded_text(tmp_path) as (_, pipeline, channel):
        guarded = await streamed(channel, "Say hello to the guard of this stream, please.")
        pipeline._guards = ()
        plain = await streamed(channel, "Say hello to the guard of this stream, please.")
    assert pipeline.windows > 1
    assert text_of(guarded) == text_of(plain) != ""
    assert any(event.HasField("finished") for event in guarded[-1].events)


async def test_a_refused_window_ends_the_call_and_is_no_failure_of_the_channel(tmp_path: Path) -> None:
    async with guarded_text(tmp_path) as (gateway, pipeline, channel):
        words = text_of(await streamed(channel, "hello")).split()
        pipeline.refused = words[0]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await streamed(channel, "hello")
        assert from_rpc(caught.value).reason == pb.ERROR_REASON_CONTENT_BLOCKED
        [breaker] = gateway.service._shared.health.snapshot()
        assert (breaker.state, breaker.calls) == (0, 0)
        printed = gateway.service.metrics.exposition().decode()
        assert 'umg_attempts_total{channel="simulated",model="m",outcome="left"} 1.0' in printed


async def test_a_guard_sees_the_completed_messages_of_an_image_stream(tmp_path: Path) -> None:
    async with running(SIMULATED, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        servicer = gateway.service._images
        known = servicer._pipeline
        servicer._pipeline = pipeline = GuardedImages(known._context, known._formats, known._delivery)
        request = pb.StreamGenerateImageRequest(
            request=pb.GenerateImageRequest(model="imgA-4-0-250828", prompt="a cat")
        )
        stub = rpc.ImageServiceStub(channel)
        seen = [each async for each in stub.StreamGenerateImage(request, metadata=METADATA)]
    assert pipeline.models == ("imgA-4-0-250828",)
    assert any(event.HasField("completed") for message in seen for event in message.events)
