"""Administration calls of commands: on the database of a config directly, or over HTTP at a running gateway."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.process.config_loading import load_storage
from umg_grpc.v1 import pb

VARIABLE = "UMG_ADMIN_KEY"

ResponseT = TypeVar("ResponseT", bound=Message)


class AdminClient(Protocol):
    """Interface of a client of `umg.v1.AdminService`, which commands use to manage keys and read usage."""

    keys_per_page: int

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the RPC of `umg.v1.AdminService` whose request type is that of `request`, and return its response.

        `kind`: type of the response. Raise UmgError or CommandError if it fails.
        """
        ...


class CommandError(Exception):
    """Failure of a command; its message states the remedy."""


@asynccontextmanager
async def opened(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield an administration client for the target, the database of a config or a running gateway.

    UmgError and CommandError in the block are printed to standard error, and exit with 1.
    """
    try:
        if target.gateway:
            from umg_grpc.cli.http_admin_client import RemoteAdmin  # here: commands on a database need no HTTP

            async with RemoteAdmin.opened(target.gateway, admin_key(target.key_file)) as client:
                yield client
        else:
            async with _local(target) as client:
                yield client
    except (UmgError, CommandError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def admin_key(file: Path | None) -> str:
    """Return the API key for calls of a gateway: from the file or, for None, the environment variable UMG_ADMIN_KEY.

    Raise CommandError if there is none.
    """
    try:
        key = os.environ.get(VARIABLE, "") if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--api-key-file: {file} cannot be read: {error}") from None
    key = key.strip()
    if not key:
        place = VARIABLE if file is None else f"the file {file}"
        raise CommandError(f"--gateway needs the key of an administrator: put it into {place}")
    if not (key.isascii() and key.isprintable()):
        raise CommandError(f"a key has visible ASCII characters only; correct {file or VARIABLE}")
    return key


@asynccontextmanager
async def _local(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield a client that works on the database of the target's config, which must exist.

    It is not created, because a running gateway would not have the keys of a new database.
    """
    # imported here: the service and its database are slow to import, and a remote gateway needs neither
    from umg_grpc.service.servicers.administration import Administration
    from umg_grpc.store import StoreError, open_store

    try:
        store = await open_store(load_storage(target.config).database, target.data, create=False)
    except StoreError as error:
        raise CommandError(str(error)) from None
    try:
        yield LocalAdmin(Administration(store, NoChannels(), check_change))
    finally:
        await store.aclose()


def check_change(request: Message) -> None:
    """Raise UmgError if the settings in a request to create or change a key break a rule of the schema.

    Other requests are not checked: they only name keys or calls, and the rules are slow to import.
    """
    if isinstance(request, pb.CreateKeyRequest | pb.UpdateKeyRequest | pb.RotateKeyRequest):
        from umg_grpc.service.pipeline.schema_validation import check

        check(request)


class NoChannels:
    """Source of channel states for the administration service of a command, which calls no providers: an empty list."""

    async def list(self) -> pb.ListChannelsResponse:
        """Return an empty list."""
        return pb.ListChannelsResponse()


class LocalAdmin:
    """Administration client that runs the service in the process of the command, with the permissions of an
    administrator.
    """

    keys_per_page = 10_000

    def __init__(self, administration: object) -> None:
        self._administration = administration

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the service's method for the type of `request`, and return its response of the type `kind`. Raise
        UmgError.
        """
        from umg_grpc.access.caller import Caller
        from umg_grpc.service.pipeline.call import CURRENT, Arrival, Call

        name = method_name(request)
        call = Call(Arrival(name, {}, trusted=True, request_id="umg"))
        call.known_caller = Caller("", "umg", (), None, None, administrator=True)
        CURRENT.set(call)
        response: ResponseT = await getattr(self._administration, name)(request, None)
        return response


def method_name(request: Message) -> str:
    """Return the name of the RPC of `umg.v1.AdminService` with this type of request, for example `GetKey`."""
    return request.DESCRIPTOR.name.removesuffix("Request")
