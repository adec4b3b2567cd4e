"""Methods and messages of gRPC requests in check files, by the schema `umg.v1`, without gRPC, since a list of the
checks makes no calls.
"""

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from umg_conformance.check_files import CheckFileError, Request
from umg_conformance.grpc_schema import DESCRIPTOR_POOL


def method(name: str) -> MethodDescriptor:
    """Return the descriptor of the RPC `package.Service/Method`. Raise CheckFileError if the schema lacks it."""
    service, _, rpc = name.partition("/")
    try:
        return DESCRIPTOR_POOL.FindServiceByName(service).methods_by_name[rpc]
    except KeyError:
        raise CheckFileError(f"the schema has no method {name}") from None


def encoded(request: Request) -> tuple[MethodDescriptor, Message]:
    """Return the RPC of a check file's request, and its message from JSON. Raise CheckFileError if unknown."""
    found = method(request.grpc)
    message = message_factory.GetMessageClass(found.input_type)()
    try:
        json_format.ParseDict(request.message, message, descriptor_pool=DESCRIPTOR_POOL)
    except json_format.ParseError as error:
        raise CheckFileError(f"{request.grpc}: {error}") from None
    return found, message
