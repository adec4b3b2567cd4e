"""Times and durations in requests of the RPCs: each is served, or refused as the caller's error with its path."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.proofs.fuzz.hostile_values import TIMES
from tests.support.databases import Postgres
from tests.support.gateways import SANDBOX, running
from tests.support.video_calls import AUTHORIZED
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.process.service_factory import SERVICE_NAMES
from umg_grpc.v1 import pb

TIME_TYPES = {"google.protobuf.Timestamp", "google.protobuf.Duration"}
MISSING = {"key_id": "self", "model": "famO-5", "channel": "sandbox"}
"""Values of texts that a request needs, so that it is not refused before its times."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Case:
    """Method, and the path of a time in its request."""

    method: MethodDescriptor
    path: tuple[FieldDescriptor, ...]

    @property
    def id(self) -> str:
        return f"{self.method.name}: {self.field}"

    @property
    def field(self) -> str:
        """Path of the time as errors have it."""
        return ".".join(field.name for field in self.path)

    def request(self, seconds: int, nanos: int) -> Message:
        made: Message = GetMessageClass(self.method.input_type)()
        for name in MISSING.keys() & made.DESCRIPTOR.fields_by_name.keys():
            setattr(made, name, MISSING[name])
        if isinstance(made, pb.CreateKeyRequest):
            made.settings.name = "n"
        inner = made
        for field in self.path:
            inner = getattr(inner, field.name)
            if field.is_repeated:
                inner = inner.add()
        inner.seconds, inner.nanos = seconds, nanos
        inner.SetInParent()
        return made


def paths(kind: Descriptor, outer: frozenset[str] = frozenset()) -> Iterator[tuple[FieldDescriptor, ...]]:
    """Yield the paths of all times and durations in a message type."""
    for field in kind.fields:
        inner = field.message_type
        if inner is None or inner.full_name in outer:
            continue
        if inner.full_name in TIME_TYPES:
            yield (field,)
        else:
            yield from ((field, *rest) for rest in paths(inner, outer | {inner.full_name}))


METHODS = [method for name in SERVICE_NAMES for method in Default().FindServiceByName(name).methods]
CASES = [Case(method, path) for method in METHODS for path in paths(method.input_type)]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def grpc_channel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[grpc.aio.Channel, None]:
    config = SANDBOX
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        config += f"database: {server.create('hostile_times')}\n"
    async with (
        running(config, tmp_path_factory.mktemp("gateway")) as gateway,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        yield channel


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_time_is_served_or_refused_by_its_path(case: Case, grpc_channel: grpc.aio.Channel) -> None:
    name = f"/{case.method.containing_service.full_name}/{case.method.name}"
    make = grpc_channel.unary_stream if case.method.server_streaming else grpc_channel.unary_unary
    call = make(name, lambda request: request.SerializeToString())
    for seconds, nanos in TIMES:
        made = call(case.request(seconds, nanos), metadata=AUTHORIZED)
        try:
            if case.method.server_streaming:
                async for _ in made:
                    pass
            else:
                await made
        except grpc.aio.AioRpcError as error:
            found = from_rpc(error)
            refused = found.reason not in (pb.ERROR_REASON_INTERNAL, pb.ERROR_REASON_UNSPECIFIED)
            assert refused, (seconds, nanos, found.message)
            if not any(field.is_repeated for field in case.path) and not 0 <= nanos < 10**9:
                assert found.metadata.get("field") == case.field, (seconds, nanos, found.message)
