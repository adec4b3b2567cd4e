"""Client of `umg.v1.AdminService` for commands: an interface for all ways to call the service, and its failures."""

from typing import Protocol, TypeVar

from google.protobuf.message import Message

ADMIN_KEY_VARIABLE = "UMG_ADMIN_KEY"

ResponseT = TypeVar("ResponseT", bound=Message)


class AdminClient(Protocol):
    """Interface of a client of `umg.v1.AdminService`, which commands use to manage keys and read usage."""

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the RPC of `umg.v1.AdminService` with this request type. Raise UmgError or CommandError."""
        ...


class CommandError(Exception):
    """Failure of a command; its message states the remedy."""


def method_name(request: Message) -> str:
    """Return the name of the RPC of `umg.v1.AdminService` with this type of request, for example `GetKey`."""
    return request.DESCRIPTOR.name.removesuffix("Request")
