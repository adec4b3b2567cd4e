"""Client of the administration service in the process of a command, on the database of a config."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from google.protobuf.message import Message

from umg_grpc.access.caller_identity import Caller
from umg_grpc.cli.admin_client import ResponseT, method_name
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.database_connection import opened_database
from umg_grpc.process.config_loading import load_storage
from umg_grpc.service.pipeline.call_state import CURRENT_CALL, Arrival, Call
from umg_grpc.service.servicers.administration import Administration
from umg_grpc.v1 import pb


class LocalAdmin:
    """Administration client that runs the service in the command's process, with an administrator's permissions."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    @classmethod
    @asynccontextmanager
    async def opened(cls, target: AdminTarget) -> "AsyncGenerator[LocalAdmin, None]":
        """Yield a client that works on the database of the target's config, which must exist. Raise CommandError."""
        async with opened_database(load_storage(target.config).database, target.data) as store:
            yield cls(Administration(store, NoChannels(), check_change))

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        name = method_name(request)
        call = Call(Arrival(name, {}, trusted=True, request_id="umg"))
        call.known_caller = Caller("", "umg", (), None, None, administrator=True)
        CURRENT_CALL.set(call)
        response: ResponseT = await getattr(self._administration, name)(request, None)
        return response


class NoChannels:
    """Source of channel states for the administration service of a command, which calls no providers: an empty list."""

    async def list(self) -> pb.ListChannelsResponse:
        return pb.ListChannelsResponse()


def check_change(request: Message) -> None:
    """Raise UmgError if a request to create or change a key breaks the schema. Other requests are not checked: they
    only name keys or calls, and the rules are slow to import.
    """
    if isinstance(request, pb.CreateKeyRequest | pb.UpdateKeyRequest | pb.RotateKeyRequest):
        from umg_grpc.service.pipeline.schema_validation import check

        check(request)
