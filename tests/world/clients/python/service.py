"""Scripted service of the client's tests, on a real gRPC server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from umg_grpc.base.errors import UmgError as GatewayError
from umg_grpc.base.grpc_status import DETAILS_KEY, HTTP_STATUSES, to_status
from umg_grpc.v1 import pb, rpc

KEY = "umg-test-key"

Context = grpc.aio.ServicerContext[object, object]


class Script(rpc.GenerationServiceServicer, rpc.ModelServiceServicer):
    """Service that answers the last text with its words, and records the calls and whether the caller left."""

    def __init__(self) -> None:
        self.metadata: dict[str, str | bytes] = {}
        self.request = pb.GenerateRequest()
        self.error: GatewayError | None = None  # of each call
        self.errors: list[GatewayError] = []  # of the next calls, one each
        self.calls = 0
        self.endless = False
        self.left = asyncio.Event()

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        await self._begin(context)
        return pb.ListModelsResponse(models=[pb.Model(id="parrot")])

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        await self._begin(context)
        self.request = request
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=request.messages[-1].parts)
        response = pb.GenerateResponse(
            model=request.model,
            candidates=[pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_STOP)],
            usage=pb.Usage(input_tokens=3, output_tokens=2**31 - 1),
        )
        response.create_time.FromSeconds(1_700_000_000)
        return response

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        self.request = request.request
        if self.errors:  # else a failure comes after the first messages
            await self._begin(context)
        try:
            yield pb.StreamGenerateResponse(events=[pb.GenerateEvent(started=pb.GenerationStarted(model="parrot"))])
            for word in request.request.messages[-1].parts[0].text.text.split(" "):
                yield pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta=f"{word} ")])
            await self._begin(context)
            if self.endless:
                await asyncio.Event().wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.left.set()
            raise

    async def _begin(self, context: Context) -> None:
        self.metadata = dict(context.invocation_metadata() or ())
        self.calls += 1
        error = self.errors.pop(0) if self.errors else self.error
        if error is not None:
            details = ((DETAILS_KEY, to_status(error)),)
            await context.abort(HTTP_STATUSES[error.reason], error.message, details)


@dataclass(frozen=True)
class Served:
    script: Script
    address: str
    server: grpc.aio.Server


@asynccontextmanager
async def serve() -> AsyncGenerator[Served, None]:
    """Serve a new script on a free port."""
    server, script = grpc.aio.server(), Script()
    rpc.add_GenerationServiceServicer_to_server(script, server)
    rpc.add_ModelServiceServicer_to_server(script, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield Served(script, address, server)
    await server.stop(None)
