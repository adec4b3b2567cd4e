"""Client of the administration services for commands: an interface for all ways to call them, and its failures."""

from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

ADMIN_KEY_VARIABLE = "UMG_ADMIN_KEY"

ResponseT = TypeVar("ResponseT", bound=Message)


class AdminClient(Protocol):
    """Interface of a client of the administration services, which commands use to manage keys and read usage."""

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the RPC of an administration service with this request type. Raise UmgError or CommandError."""
        ...


async def pages(admin: AdminClient, request: Message, kind: type[ResponseT]) -> AsyncIterator[ResponseT]:
    """Yield the response to the request of a list, and the further pages of the list. Its `page_token` is set."""
    following: Any = request  # all lists have these two fields
    while True:
        page: Any = await admin.call(request, kind)
        yield page
        if not page.next_page_token:
            return
        following.page_token = page.next_page_token


class CommandError(Exception):
    """Failure of a command; its message states the remedy."""


def method_name(request: Message) -> str:
    """Return the name of the RPC with this type of request, for example `GetKey`."""
    return request.DESCRIPTOR.name.removesuffix("Request")


def service_name(request: Message) -> str:
    """Return the full name of the service whose RPC has this type of request, for example `umg.v1.AdminService`."""
    [service] = request.DESCRIPTOR.file.services_by_name.values()  # a request is in the file of its service
    name: str = service.full_name
    return name
