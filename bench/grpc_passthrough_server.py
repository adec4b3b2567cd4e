"""Bare gRPC server with which the gateway's gRPC face is compared: a `grpc.aio` server on uvloop.

It sends the bytes of the gateway to the provider, by the HTTP client of the gateway, and wraps the bytes of the
response without reading them.

`python -m bench.grpc_passthrough_server UPSTREAM CREDENTIAL` prints its address.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator

import grpc
import uvloop

from bench import chat_bodies
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest, request_to
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

SERVICE = "umg.v1.GenerationService"
CHAT = "chat"
DEADLINES = Deadlines(10.0, 60.0, 60.0, 600.0)


def request_of(model: str) -> pb.GenerateRequest:
    """Return the canonical request of a load for a model: the chat request of the loads over HTTP."""
    body = chat_bodies.request_body(model)
    request = TEXT_FORMATS[CHAT].decode_request(body, {}).canonical
    request.ClearField("source")
    return request


class BareServicer:
    """Two methods of the generation service, with the provider's request for each model ready to be sent."""

    def __init__(self, client: Client, upstream: str, credential: str) -> None:
        url = f"{upstream}{chat_bodies.PATH}"
        headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
        common = request_to(url, headers)
        self._client = client
        self._outgoing = {
            model: OutgoingRequest(url, headers, _provider_body(model), DEADLINES, common=common)
            for model in chat_bodies.MODELS
        }

    async def generate(self, request: pb.GenerateRequest, _context: Context) -> pb.GenerateResponse:
        """Return the provider's response as the source of an empty one."""
        fetched = await self._client.fetch(self._outgoing[request.model])
        return pb.GenerateResponse(source=pb.SourceDocument(format=CHAT, body=fetched.body))

    async def stream(
        self, request: pb.StreamGenerateRequest, _context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Yield a message for each read from the provider."""
        exchange = await self._client.open(self._outgoing[request.request.model])
        try:
            while chunk := await exchange.read():
                yield pb.StreamGenerateResponse(source_frames=chunk)
        finally:
            exchange.close()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers of both methods."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Generate": grpc.unary_unary_rpc_method_handler(
                    self.generate, pb.GenerateRequest.FromString, pb.GenerateResponse.SerializeToString
                ),
                "StreamGenerate": grpc.unary_stream_rpc_method_handler(
                    self.stream, pb.StreamGenerateRequest.FromString, pb.StreamGenerateResponse.SerializeToString
                ),
            },
        )


def _provider_body(model: str) -> bytes:
    """Return the body that the gateway sends to the provider for the canonical request of a model."""
    is_stream = model not in chat_bodies.WHOLE
    return TEXT_FORMATS[CHAT].encode_request(request_of(model), model, is_stream).body


async def main(upstream: str, credential: str) -> None:
    """Run the server until the process is killed."""
    async with Client.opened() as client:
        server = grpc.aio.server(handlers=[BareServicer(client, upstream, credential).handlers()])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(f"gRPC 127.0.0.1:{port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
