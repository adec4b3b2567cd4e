"""Operations of the schema: each is served, or reports that it is not."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import Address, parse
from umg_grpc.process.serve_options import Options
from umg_grpc.process.serve_process import gateway
from umg_grpc.process.service_factory import SERVICE_NAMES

CONFIG = "channels: [{name: dead, protocols: [chat], base_url: 'http://127.0.0.1:1', api_key: x, models: [m]}]"
PROTO = Path(__file__).parents[3] / "proto"
DECLARED = [
    f"umg.v1.{name}"
    for path in sorted(PROTO.glob("umg/v1/*_service.proto"))
    for name in re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
]
CALLED_BY_GATEWAY = "umg.v1.GuardService"
"""Service of an operator, of which the gateway is the client."""
METHODS = [
    method for name in DECLARED if name != CALLED_BY_GATEWAY for method in Default().FindServiceByName(name).methods
]
SERVED = {
    "umg.v1.GenerationService.Generate",
    "umg.v1.GenerationService.StreamGenerate",
    "umg.v1.GenerationService.CountTokens",
    "umg.v1.GenerationService.GetStoredResponse",
    "umg.v1.GenerationService.DeleteStoredResponse",
    "umg.v1.GenerationService.CancelStoredResponse",
    "umg.v1.GenerationService.ListInputItems",
    "umg.v1.EmbeddingService.Embed",
    "umg.v1.RerankService.Rerank",
    "umg.v1.ModerationService.Moderate",
    "umg.v1.SpeechService.Speak",
    "umg.v1.SpeechService.StreamSpeak",
    "umg.v1.TranscriptionService.Transcribe",
    "umg.v1.TranscriptionService.StreamTranscribe",
    "umg.v1.ImageService.GenerateImage",
    "umg.v1.ImageService.StreamGenerateImage",
    *(f"umg.v1.AdminService.{name}Key" for name in ("Create", "Get", "Update", "Rotate", "Revoke")),
    *(f"umg.v1.AdminService.List{names}" for names in ("Keys", "Usage", "EndUserUsage", "RequestRecords", "Channels")),
    *("umg.v1.AlertService.ListAlerts", "umg.v1.AlertService.TestAlertReceiver"),
    *(f"umg.v1.ChannelService.{name}" for name in ("ListChannelDetails", "CheckChannel", "UpdateChannel")),
    *("umg.v1.ModelPriceService.ListModelPrices", "umg.v1.ModelPriceService.UpdateModelPrice"),
    "umg.v1.AdminService.GetUsage",
    "umg.v1.AdminService.GetCallSummary",
    "umg.v1.AdminService.GetRequestRecord",
    *(f"umg.v1.AccountService.{name}Account" for name in ("Create", "Get", "Update")),
    *("umg.v1.AccountService.ListAccounts", "umg.v1.AccountService.SetAccountClosed"),
    *(f"umg.v1.UserService.{name}" for name in ("CreateUser", "GetUser", "GetCaller", "ListUsers", "UpdateUser")),
    *("umg.v1.UserService.ListSessions", "umg.v1.UserService.EndSession"),
    "umg.v1.AuditService.ListAuditEvents",
    "umg.v1.ConfigService.GetConfig",
    *(f"umg.v1.TaskService.{name}" for name in ("ListTasks", "GetTask", "RedeliverCallback")),
    "umg.v1.ModelService.ListModels",
    "umg.v1.ModelService.GetModel",
    "umg.v1.FileService.GetFile",
    "umg.v1.FileService.DownloadFile",
    *(f"umg.v1.VideoService.{name}VideoTask" for name in ("Create", "Remix", "Get", "Delete", "Watch")),
    "umg.v1.VideoService.ListVideoTasks",
    "umg.v1.VideoService.DownloadVideo",
    "umg.v1.VideoService.ReceiveVideoCallback",
}


@pytest_asyncio.fixture(params=["in process", "socket"])
async def channel(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[grpc.aio.Channel, None]:
    anywhere = Address("127.0.0.1", 0)
    options = Options(None, anywhere, anywhere, tmp_path, ("grpc",))
    config = parse(CONFIG, "test.yaml", {})
    async with gateway(options, config, {"UMG_API_KEY": "sk-umg-operations"}, None) as state:
        assert state.service is not None
        if request.param == "in process":
            yield state.service.channel()
        else:
            async with grpc.aio.insecure_channel(str(state.grpc)) as made:
                yield made


async def reason(channel: grpc.aio.Channel, method: MethodDescriptor) -> str:
    """Call the method with an empty request. Return the reason of the error; "" if there is none."""
    assert method.containing_service is not None
    path = f"/{method.containing_service.full_name}/{method.name}"
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    response = GetMessageClass(method.output_type)
    call = make(
        path, request_serializer=lambda message: message.SerializeToString(), response_deserializer=response.FromString
    )
    metadata = (("authorization", "Bearer sk-umg-operations"),)
    try:
        made = call(GetMessageClass(method.input_type)(), metadata=metadata)
        if method.server_streaming:
            async for _ in made:
                pass
        else:
            await made
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name
    return ""


def test_every_service_of_the_schema_is_known() -> None:
    assert {*SERVICE_NAMES, CALLED_BY_GATEWAY} == set(DECLARED)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
async def test_an_operation_is_served_or_unimplemented(method: MethodDescriptor, channel: grpc.aio.Channel) -> None:
    found = await reason(channel, method)
    if method.full_name in SERVED:
        assert found in {"", "MISSING_FIELD"}
    else:
        assert found == "NOT_IMPLEMENTED"
