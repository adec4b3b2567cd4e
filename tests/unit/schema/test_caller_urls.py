"""Fields with URLs: each states its use, and each that the service itself calls is guarded on its way.

A new field named `url`, `uri`, `*_url` or `*_uri` fails here until it has the option `url_use`. A field with
`URL_USE_FETCHED` in a request of a served method fails until `SENDERS` has a call with it, to which all URLs of the
table of refused ones are sent.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import Default

from tests.support.gateways import KEY, running
from tests.support.refused_urls import REFUSED_URLS
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.process.service_factory import SERVICE_NAMES
from umg_grpc.v1 import pb, rpc

NAME = re.compile(r"(?:.*_)?ur[li]s?")
PROTO = Path(__file__).parents[3] / "proto"

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}
  - name: images
    protocols: [native_images]
    base_url: https://images.example/v1beta
    models: [famG-3-pro-image-preview]
"""
"""Config of the gateway that the calls of `SENDERS` are sent to, with a model for each of them."""
CREDENTIALS = (("authorization", f"Bearer {KEY}"),)


async def make_image(channel: grpc.aio.Channel, url: str) -> object:
    inputs = [pb.ImageInput(url=url)]
    request = pb.GenerateImageRequest(model="famG-3-pro-image-preview", prompt="Hi", inputs=inputs)
    return await rpc.ImageServiceStub(channel).GenerateImage(request, metadata=CREDENTIALS)


async def create_video(channel: grpc.aio.Channel, request: pb.CreateVideoTaskRequest) -> object:
    request.model = "clips-1"
    stub: rpc.VideoServiceAsyncStub = rpc.VideoServiceStub(channel)  # type: ignore[assignment]
    return await stub.CreateVideoTask(request, metadata=CREDENTIALS)


async def notify(channel: grpc.aio.Channel, url: str) -> object:
    return await create_video(channel, pb.CreateVideoTaskRequest(callback_url=url))


async def show(channel: grpc.aio.Channel, url: str) -> object:
    media = [pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, url=url)]
    return await create_video(channel, pb.CreateVideoTaskRequest(parameters=pb.VideoParameters(media=media)))


SENDERS: Mapping[str, Callable[[grpc.aio.Channel, str], Awaitable[object]]] = {
    "umg.v1.ImageInput.url": make_image,
    "umg.v1.CreateVideoTaskRequest.callback_url": notify,
    "umg.v1.VideoMedia.url": show,
}
"""Full name of a field -> function that makes a call with `CREDENTIALS` and a URL in this field, by which the URL would
be fetched.
"""
CALLED_LATER = {"umg.v1.CreateVideoTaskRequest.callback_url", "umg.v1.VideoMedia.url"}
"""Fields whose URL is called after the response, or by the provider: its name is looked up when it is called."""


def messages() -> Iterator[Descriptor]:
    for path in sorted(PROTO.glob("umg/v1/*.proto")):
        yield from Default().FindFileByName(f"umg/v1/{path.name}").message_types_by_name.values()


def use(field: FieldDescriptor) -> "pb.UrlUse.ValueType":
    return field.GetOptions().Extensions[pb.url_use]


FIELDS = [field for message in messages() for field in message.fields]


def reachable(message: Descriptor, seen: set[str]) -> Iterator[FieldDescriptor]:
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        yield field
        if field.message_type is not None:
            yield from reachable(field.message_type, seen)


def fetched_by_served_methods() -> set[str]:
    methods = [method for name in SERVICE_NAMES for method in Default().FindServiceByName(name).methods]
    fields = [field for method in methods for field in reachable(method.input_type, set())]
    return {field.full_name for field in fields if use(field) == pb.URL_USE_FETCHED}


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if NAME.fullmatch(field.name)], ids=lambda field: field.full_name
)
def test_a_field_with_a_url_states_its_use(field: FieldDescriptor) -> None:
    assert field.type == FieldDescriptor.TYPE_STRING
    assert use(field) != pb.URL_USE_UNSPECIFIED, "add [(url_use) = ...] to the field, see proto/umg/v1/options.proto"


def test_only_fields_with_urls_state_a_use() -> None:
    assert [field.full_name for field in FIELDS if use(field) and not NAME.fullmatch(field.name)] == []


def test_no_url_that_the_service_calls_is_in_an_answer_only() -> None:
    """A field that is in requests and answers has one use: that in requests."""
    services = [
        Default().FindServiceByName(f"umg.v1.{name}")
        for path in sorted(PROTO.glob("umg/v1/*_service.proto"))
        for name in re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
    ]
    in_requests = {
        field.full_name
        for service in services
        for method in service.methods
        for field in reachable(method.input_type, set())
    }
    assert {field.full_name for field in FIELDS if use(field) == pb.URL_USE_FETCHED} <= in_requests


def test_every_url_that_a_served_method_calls_has_a_call_here() -> None:
    assert SENDERS.keys() == fetched_by_served_methods()


async def test_every_refused_url_is_refused_by_the_running_service(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as made, grpc.aio.insecure_channel(made.grpc) as channel:
        for field, send in SENDERS.items():
            for case in REFUSED_URLS:
                if field in CALLED_LATER and case.id.startswith("name:"):
                    continue
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await send(channel, case.url)
                error = from_rpc(caught.value)
                assert error.name in {"INVALID_FIELD", "MISSING_FIELD"}, (field, case.id)
                assert error.metadata["field"].endswith(field.rpartition(".")[2]), (field, case.id)
