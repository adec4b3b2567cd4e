"""Error responses in the OpenAPI document: one reusable component for each format and HTTP status."""

from collections.abc import Callable

from http_facade.exchange.error_responses import error_encoder
from http_facade.routes import DEFAULT_FORMAT
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.errors.http_status import HTTP_STATUS, OF_FORMATS, PROVIDERS_OWN
from umg_grpc.wire.model_lists.openapi_bodies import shapes_of
from umg_grpc.wire.openapi_schemas.encoded_bodies import SAMPLE_TEXT, EncodedBody
from umg_grpc.wire.openapi_schemas.struct_schemas import StructSchemas
from umg_grpc.wire.protobuf_json import enum_names

_METADATA = dict.fromkeys(("field", "model", "request_id", "unsupported", "upstream_code"), SAMPLE_TEXT)
_STATUSES = (
    *HTTP_STATUS.items(),
    *((reason, status) for (_, reason), status in OF_FORMATS.items()),
    *((pb.ERROR_REASON_UPSTREAM_REJECTED, int(status)) for status in PROVIDERS_OWN),
)
_ERRORS = [
    (UmgError(reason, SAMPLE_TEXT, **metadata), status)
    for reason, status in _STATUSES
    for metadata in ({}, {**_METADATA, "retry_after_seconds": "1"})
]


class ErrorResponses:
    """Builder of the error responses of the OpenAPI document."""

    def __init__(self, responses: JsonObject, types: StructSchemas) -> None:
        """Create a builder. It adds error responses to `responses`, the components of the document."""
        self._responses = responses
        self._types = types
        self._owners = {error_encoder(DEFAULT_FORMAT): DEFAULT_FORMAT}  # encoder -> first format that has it

    def response(self, name: str, status: int) -> JsonObject:
        """Return a reference to the response for a status in the error format `name`; add the response if needed."""
        component = f"{self._owner(name)}.{status}"
        if component not in self._responses:
            owners = dict.fromkeys(map(self._owner, shapes_of(name)))
            schema = self._types.schema(tuple(_body(owner, error_encoder(owner)) for owner in owners))
            content = {"application/json": {"schema": schema}}
            self._responses[component] = {"description": error_description(status), "content": content}
        return {"$ref": f"#/components/responses/{component}"}

    def _owner(self, name: str) -> str:
        return self._owners.setdefault(error_encoder(name), name)


def error_description(status: int) -> str:
    """Return the description of the error response with an HTTP status, which lists its error reasons."""
    names = enum_names(pb.ErrorReason.DESCRIPTOR)
    found = {reason for reason, value in HTTP_STATUS.items() if value == status and reason}
    found |= {reason for (_, reason), value in OF_FORMATS.items() if value == status}
    if str(status) in PROVIDERS_OWN:
        found.add(pb.ERROR_REASON_UPSTREAM_REJECTED)
    reasons = sorted(names[reason].upper() for reason in found)
    return f"Reasons: {', '.join(f'`{name}`' for name in reasons)}." if reasons else "The call failed."


def _body(name: str, encode: Callable[[UmgError, int], bytes]) -> EncodedBody:
    description = f"Error body of the format `{name}`."
    return EncodedBody(f"{name}.Error", description, lambda: [encode(*sample) for sample in _ERRORS])
