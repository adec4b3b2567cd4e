"""Order of checks over gRPC: no part of a request is decoded before its caller's key is verified."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tests.support.gateways import KEY, channel, running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.base.inprocess_channel import Context, HandlerTable, InProcessServer
from umg_grpc.service.pipeline.call_interceptor import CallInterceptor
from umg_grpc.service.pipeline.call_log import CallLog
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.store import open_store
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.text_format_interface import BIG_BYTES, FaceRequest

BAD = (("authorization", "Bearer sk-umg-unknown"),)
GOOD = (("authorization", f"Bearer {KEY}"),)


@dataclass
class Probe:
    """Service whose requests record that they are decoded."""

    stub: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
    secret: str
    decoded: list[bytes] = field(default_factory=list)


@pytest_asyncio.fixture
async def probe(tmp_path: Path) -> AsyncGenerator[Probe, None]:
    store = await open_store("sqlite", tmp_path)
    keys = ApiKeys(store)
    authenticator = Authenticator(keys)
    await authenticator.start()
    _, secret = await keys.create("probe")
    decoded = list[bytes]()

    def decode(data: bytes) -> pb.GenerateRequest:
        decoded.append(data)
        return pb.GenerateRequest.FromString(data)

    async def answer(request: pb.GenerateRequest, context: Context) -> bytes:
        return request.model.encode()

    methods = InProcessServer([CallInterceptor(CallLog(Metrics()), authenticator)])
    handler = grpc.unary_unary_rpc_method_handler(answer, request_deserializer=decode)
    methods.add_registered_method_handlers("umg.v1.RerankService", {"Ask": handler})
    server = grpc.aio.server(handlers=[HandlerTable(methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as made:
        yield Probe(made.unary_unary("/umg.v1.RerankService/Ask"), secret, decoded)
    await server.stop(0)
    await authenticator.aclose()
    await store.aclose()


async def outcome(probe: Probe, data: bytes, metadata: tuple[tuple[str, str], ...]) -> str:
    try:
        return (await probe.stub(data, metadata=metadata)).decode()
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name


@pytest.mark.parametrize("size", [0, BIG_BYTES], ids=["small", "large"])
async def test_a_message_is_decoded_after_its_key_is_known(probe: Probe, size: int) -> None:
    good = pb.GenerateRequest(model="m", user="x" * size).SerializeToString()
    broken = b"\xff" * (size + 1)
    assert [await outcome(probe, data, ()) for data in (good, broken)] == ["MISSING_KEY"] * 2
    assert [await outcome(probe, data, BAD) for data in (good, broken)] == ["INVALID_KEY"] * 2
    assert probe.decoded == []
    known = (("authorization", f"Bearer {probe.secret}"),)
    assert [await outcome(probe, data, known) for data in (good, broken)] == ["m", "MALFORMED_BODY"]
    assert probe.decoded == [good, broken]


@dataclass(frozen=True)
class Sent:
    id: str
    body: bytes
    message: str


SENT = [
    Sent("a body that fails a decoder", b'{"fails":1}', "compare it with the format"),
    Sent("a deeply nested body", b'{"a":' * 201 + b"1" + b"}" * 201, "deeper than 200 levels"),
    Sent("many members", b"{%b}" % b",".join([b'"a":1'] * 100_001), "more than 100000 members"),
]


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
async def test_a_source_document_is_bounded_and_its_decoder_never_an_internal_error(
    case: Sent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    decoded = list[bytes]()

    def decode(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
        decoded.append(body)
        raise TypeError("secret")

    monkeypatch.setitem(TEXT_FACES, "chat", replace(TEXT_FACES["chat"], decode_request=decode))
    request = pb.GenerateRequest(source=pb.SourceDocument(format="chat", body=case.body))
    config = "channels:\n" + channel("dead", "chat", "http://127.0.0.1:1/v1", "m")
    async with running(config, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as made:
        generation = rpc.GenerationServiceStub(made)
        with capture_logs() as lines:
            for metadata, reason in ((BAD, "INVALID_KEY"), (GOOD, "MALFORMED_BODY")):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await generation.Generate(request, metadata=metadata)
                assert from_rpc(caught.value).name == reason
    assert case.message in from_rpc(caught.value).message
    assert len(decoded) == (case.body == SENT[0].body)
    assert [line["log_level"] for line in lines if "place" in line] == ["error"] * len(decoded)
    assert "secret" not in str(lines)
