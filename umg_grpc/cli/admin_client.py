"""Calls of `umg.v1.AdminService` by commands, on the database of a config or at a gateway."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from google.protobuf.message import Message

from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.config import load_storage
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

VARIABLE = "UMG_ADMIN_KEY"

ResponseT = TypeVar("ResponseT", bound=Message)


class AdminClient(Protocol):
    """Client of the service."""

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response of the method whose request this is. Raise UmgError or CommandError."""
        ...


class CommandError(Exception):
    """Failure of a command, whose message names the remedy."""


@asynccontextmanager
async def opened(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield a client. Failures are printed to standard error and exit with 1."""
    try:
        if target.gateway:
            from umg_grpc.cli.remote_admin import RemoteAdmin  # here: commands on a database need no HTTP

            async with RemoteAdmin.opened(target.gateway, admin_key(target.key_file)) as client:
                yield client
        else:
            async with _local(target) as client:
                yield client
    except (UmgError, CommandError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def admin_key(file: Path | None) -> str:
    """Return the key for a gateway. Raise CommandError if there is none."""
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
    """Yield a client of the service on the store of the config, which must exist: keys in a new one would be unknown to
    the gateway.
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
    """Raise UmgError for settings that break a rule of the schema. Other requests name a key or calls, which are looked
    up: the rules, which are slow to import, add nothing.
    """
    if isinstance(request, pb.CreateKeyRequest | pb.UpdateKeyRequest | pb.RotateKeyRequest):
        from umg_grpc.service.pipeline.validation import check

        check(request)


class NoChannels:
    """Empty list of channels: commands read those of a config without the service."""

    async def list(self) -> pb.ListChannelsResponse:
        """Return no channels."""
        return pb.ListChannelsResponse()


class LocalAdmin:
    """Client of the service in this process, as an administrator."""

    def __init__(self, administration: object) -> None:
        self._administration = administration

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response, see `AdminClient`."""
        from umg_grpc.access.caller import Caller
        from umg_grpc.service.pipeline.call import CURRENT, Arrival, Call

        name = method_name(request)
        call = Call(Arrival(name, {}, trusted=True, request_id="umg"))
        call.known_caller = Caller("", "umg", (), None, None, administrator=True)
        CURRENT.set(call)
        response: ResponseT = await getattr(self._administration, name)(request, None)
        return response


def method_name(request: Message) -> str:
    """Return the name of the method whose request this is."""
    return request.DESCRIPTOR.name.removesuffix("Request")
