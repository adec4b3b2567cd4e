"""Methods and messages of gRPC requests in check files, by the schema `umg.v1`.

It does not import gRPC, since a list of the checks makes no calls.
"""

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2

from umg_grpc.conformance.check_files import CheckFileError, Request
from umg_grpc.v1 import pb

BUILT_IN = (pb.GenerateRequest, health_pb2.HealthCheckRequest, error_details_pb2.ErrorInfo)
"""Messages whose import puts their schemas into the pool."""


def method(name: str) -> MethodDescriptor:
    """Return the descriptor of the RPC `package.Service/Method`. Raise CheckFileError if the schema lacks it."""
    service, _, rpc = name.partition("/")
    try:
        return descriptor_pool.Default().FindServiceByName(service).methods_by_name[rpc]
    except KeyError:
        raise CheckFileError(f"the schema has no method {name}") from None


def encoded(request: Request) -> tuple[MethodDescriptor, Message]:
    """Return the RPC that a request of a check file names, and its message from JSON. Raise CheckFileError if the
    schema lacks it.
    """
    found = method(request.grpc)
    message = message_factory.GetMessageClass(found.input_type)()
    try:
        json_format.ParseDict(request.message, message)
    except json_format.ParseError as error:
        raise CheckFileError(f"{request.grpc}: {error}") from None
    return found, message
