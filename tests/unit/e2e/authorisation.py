"""Calls of every route and every method with keys of several kinds, for the tests of authorisation."""

import base64
import json
import re
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2

from http_facade.routes import ROUTE_TABLE, Route, Shape
from tests.support.gateways import Running
from tests.support.images import PNG
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import wav_file

TEXT, MESSAGES, NATIVE = "famO-5", "famC-sonnet-4-5", "famG-2.5-pro"
VIDEO, VIDEO_D = "clips-1", "clips-d"
EMBEDDING, NATIVE_EMBEDDING, RERANK = "text-embedding-3-small", "text-embedding-004", "rerank-v1"
MODERATION, SPEECH, TRANSCRIPTION = "omni-moderation-latest", "tts-1", "whisper-1"
IMAGE, EDITED = "imgA-3-0-t2i-250415", "imgC-1"
CONFIG = f"""
channels:
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    models:
      [{TEXT}, {MESSAGES}, {NATIVE}, {EMBEDDING}, {NATIVE_EMBEDDING}, {RERANK}, {MODERATION}, {SPEECH}, {TRANSCRIPTION}, {IMAGE}, {EDITED},
       {VIDEO}, {VIDEO_D}]
models:
  {VIDEO}: {{capabilities: {{operations: [videos]}}}}
  {VIDEO_D}: {{family: vidD, capabilities: {{operations: [videos]}}}}
overload: {{lag: 10}}
alerts:
  receivers:
    ops: {{kind: webhook, url: "http://127.0.0.1:1/", secret: whsec_{"A" * 32}}}
"""

RECORDING = wav_file(bytes(4800), 24_000)
HI = [{"role": "user", "content": "Hi"}]
CONTENT = {"parts": [{"text": "Hi"}]}
PICTURE = base64.b64encode(PNG).decode()
SHOWN = [{"type": "text", "text": "Hi"}]
RANKED = {"model": RERANK, "query": "Hi", "documents": ["Hi"]}
BODIES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "chat": (TEXT, {"model": TEXT, "messages": HI}),
    "responses": (TEXT, {"model": TEXT, "input": "Hi"}),
    "messages": (MESSAGES, {"model": MESSAGES, "messages": HI, "max_tokens": 9}),
    "cohere": (TEXT, {"model": TEXT, "messages": HI}),
    "native": (NATIVE, {"contents": [CONTENT]}),
    "native_embedding": (NATIVE_EMBEDDING, {"content": CONTENT}),
    "native_embeddings": (NATIVE_EMBEDDING, {"requests": [{"content": CONTENT}]}),
    "embeddings": (EMBEDDING, {"model": EMBEDDING, "input": "Hi"}),
    "ollama_chat": (TEXT, {"model": TEXT, "messages": HI}),
    "ollama_generate": (TEXT, {"model": TEXT, "prompt": "Hi"}),
    "ollama_embed": (EMBEDDING, {"model": EMBEDDING, "input": "Hi"}),
    "ollama_embeddings": (EMBEDDING, {"model": EMBEDDING, "prompt": "Hi"}),
    "ollama_models": (TEXT, {"model": TEXT}),
    "ollama_running": (TEXT, {}),
    "cohere_embed": (EMBEDDING, {"model": EMBEDDING, "texts": ["Hi"], "input_type": "search_query"}),
    "rerank": (RERANK, RANKED),
    "rerank_v2": (RERANK, RANKED),
    "moderations": (MODERATION, {"model": MODERATION, "input": "Hi"}),
    "speech": (SPEECH, {"model": SPEECH, "input": "Hi", "voice": "alloy", "stream_format": "sse"}),
    "transcriptions": (TRANSCRIPTION, {"model": TRANSCRIPTION, "file": RECORDING}),
    "translations": (TRANSCRIPTION, {"model": TRANSCRIPTION, "file": RECORDING}),
    "images": (IMAGE, {"model": IMAGE, "prompt": "Hi", "size": "720x1280"}),
    "image_edits": (EDITED, {"model": EDITED, "prompt": "Hi", "image": PICTURE}),
    "image_variations": (EDITED, {"model": EDITED, "image": PICTURE}),
    "video": (VIDEO, {"model": VIDEO, "prompt": "Hi"}),
    "video_object": (VIDEO, {"model": VIDEO, "prompt": "Hi"}),
    "video_d": (VIDEO_D, {"model": VIDEO_D, "content": SHOWN}),
    "video_e_v1": (VIDEO, {"model": VIDEO, "prompt": "Hi"}),
    "video_e_3": (VIDEO, {"prompt": "Hi"}),
    "video_f": (VIDEO, {"req_key": VIDEO, "prompt": "Hi"}),
    "video_g": (VIDEO, {"model": VIDEO, "content": SHOWN, "resolution": "768P", "duration": 4}),
    "models": (TEXT, {}),
    "native_models": (NATIVE, {}),
    "admin": ("", {}),
}
"""Model and body of a call by the format of its route."""
QUERIES = {"/vidF": "?Action=CVSync2AsyncSubmitTask", "/vidE/tasks": "?task_ids=absent"}
"""Queries that paths need."""
SETTINGS_SHAPES = {
    *(Shape.CREATE_KEY, Shape.UPDATE_KEY, Shape.CREATE_ORGANIZATION, Shape.UPDATE_ORGANIZATION),
    *(Shape.CREATE_PROJECT, Shape.UPDATE_PROJECT, Shape.CREATE_USER, Shape.UPDATE_USER),
}
SETTINGS_BODIES: Mapping[Shape, dict[str, Any]] = {
    **{shape: {"settings": {"name": "another"}} for shape in SETTINGS_SHAPES},
    Shape.UPDATE_CHANNEL: {"settings": {"disabled": False}},
    Shape.UPDATE_MODEL_PRICE: {"prices": None},
}

USER = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
GENERATE = pb.GenerateRequest(model=TEXT, messages=[USER])
MAKE_IMAGE = pb.GenerateImageRequest(model=IMAGE, prompt="Hi", size="720x1280")
SPEAK = pb.SpeakRequest(model=SPEECH, input="Hi", voice="alloy")
TRANSCRIBE = pb.TranscribeRequest(model=TRANSCRIPTION, audio=pb.AudioFile(data=RECORDING))
REQUESTS: Mapping[str, Message] = {
    "Speak": SPEAK,
    "StreamSpeak": pb.StreamSpeakRequest(request=SPEAK),
    "Transcribe": TRANSCRIBE,
    "StreamTranscribe": pb.StreamTranscribeRequest(request=TRANSCRIBE),
    "Generate": GENERATE,
    "StreamGenerate": pb.StreamGenerateRequest(request=GENERATE),
    "CountTokens": pb.CountTokensRequest(request=GENERATE),
    "Embed": pb.EmbedRequest(model=EMBEDDING, inputs=[pb.EmbeddingInput(text="Hi")]),
    "Rerank": pb.RerankRequest(model=RERANK, query="Hi", documents=[pb.RerankDocument(text="Hi")]),
    "Moderate": pb.ModerateRequest(model=MODERATION, inputs=[pb.ModerationInput(parts=[pb.ModerationPart(text="Hi")])]),
    "GenerateImage": MAKE_IMAGE,
    "StreamGenerateImage": pb.StreamGenerateImageRequest(request=MAKE_IMAGE),
    "CreateVideoTask": pb.CreateVideoTaskRequest(model=VIDEO, parameters=pb.VideoParameters(prompt="Hi")),
    "RemixVideoTask": pb.RemixVideoTaskRequest(prompt="Hi"),
    "GetModel": pb.GetModelRequest(model=TEXT),
    "GetKey": pb.GetKeyRequest(key_id="another"),
    "TestAlertReceiver": pb.TestAlertReceiverRequest(receiver="ops"),
    "CheckChannel": pb.CheckChannelRequest(channel="sandbox"),
    "UpdateModelPrice": pb.UpdateModelPriceRequest(model=TEXT),
    "UpdateChannel": pb.UpdateChannelRequest(channel="sandbox", update_mask=FieldMask(paths=["weight"])),
}
"""Requests of methods; the request of any other method is empty."""

PROTO = Path(__file__).parents[3] / "proto"
METHODS = [
    method
    for path in sorted(PROTO.glob("umg/v1/*_service.proto"))
    for name in re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
    if name != "GuardService"  # operators serve it
    for method in Default().FindServiceByName(f"umg.v1.{name}").methods
]
KEYED_ROUTES = [
    route
    for route in ROUTE_TABLE
    if route.needs_key and not route.path.endswith("/") and route.shape is not Shape.CALL_METHOD
]
"""Routes with a key, less the variants with a slash at the end, and less those of the methods, which have tests of their
own.
"""


@dataclass(frozen=True)
class Gate:
    gateway: Running
    session: aiohttp.ClientSession
    channel: grpc.aio.Channel
    secrets: Mapping[str, str]

    def headers(self, kind: str, scopes: Collection[str] = ()) -> dict[str, str]:
        """Return the credentials of a kind of key, for a call that needs one of the scopes."""
        if kind == "no key":
            return {}
        named = f"all but {', '.join(sorted(scopes))}" if kind == "other operations" else kind
        return {"authorization": f"Bearer {self.secrets[named]}"}


def payload(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request with a body: a form for one with a file, else JSON."""
    if not any(isinstance(value, bytes) for value in body.values()):
        return {"json": body}
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in body.items():
        form.add_field(name, value, filename="a.wav" if isinstance(value, bytes) else None)
    return {"data": form}


def path_of(route: Route, model: str) -> str:
    """Return the path of a route with its model, "absent" without one, and with the query that it needs."""
    path = re.sub(r"\{(?:model|deployment)(?::.+?)?\}(?=[:/]|$)", model or "absent", route.path)
    return path + QUERIES.get(route.path, "")


def request_of(method: MethodDescriptor) -> Message:
    request = GetMessageClass(method.input_type)()
    if (known := REQUESTS.get(method.name)) is not None:
        request.CopyFrom(known)
    return request


async def call(gate: Gate, method: MethodDescriptor, headers: Mapping[str, str], request: Message) -> tuple[str, str]:
    """Call the method. Return reason and message of its error; both are empty if there is none."""
    assert method.containing_service is not None
    make = gate.channel.unary_stream if method.server_streaming else gate.channel.unary_unary
    stub = make(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    try:
        made = stub(request, metadata=[*headers.items()])
        if method.server_streaming:
            async for _ in made:
                pass
        else:
            await made
    except grpc.aio.AioRpcError as error:
        failure = from_rpc(error)
        return failure.name, failure.message
    return "", ""


async def call_over_http(gate: Gate, method: MethodDescriptor, headers: Mapping[str, str], request: Message) -> str:
    """Call the method by the Connect protocol. Return the reason of its error; empty if there is none."""
    assert method.containing_service is not None
    path, body, kind = f"/{method.containing_service.full_name}/{method.name}", request.SerializeToString(), "proto"
    if method.server_streaming:
        kind, body = "connect+proto", struct.pack(">BI", 0, len(body)) + body
    sent = {**headers, "content-type": f"application/{kind}"}
    async with gate.session.post(path, data=body, headers=sent) as answer:
        text = await answer.read()
        if method.server_streaming:
            assert answer.status == 200
            start = text.rindex(b"\x02\x00\x00") + 5  # the envelope of the end, with less than 64 KiB
            failure = json.loads(text[start:]).get("error")
        else:
            failure = json.loads(text) if answer.status != 200 else None
    if failure is None:
        return ""
    [value] = [each["value"] for each in failure["details"] if each["type"] == "google.rpc.ErrorInfo"]
    return error_details_pb2.ErrorInfo.FromString(base64.b64decode(value + "==")).reason
