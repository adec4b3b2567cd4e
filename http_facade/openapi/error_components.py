"""Error responses in the OpenAPI document: one reusable component for each format and HTTP status."""

from http_facade.routes import DEFAULT_FORMAT
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.errors.http_status import HTTP_STATUS, OF_FORMATS, PROVIDERS_OWN
from umg_grpc.wire.openapi_schemas.error_body_types import ERROR_TYPES, error_type
from umg_grpc.wire.openapi_schemas.struct_schemas import StructSchemas
from umg_grpc.wire.protobuf_json import enum_names


class ErrorResponses:
    """Builder of the error responses of the OpenAPI document."""

    def __init__(self, responses: JsonObject, types: StructSchemas) -> None:
        """Create a builder, which adds the error responses to `responses`, the components of the document.

        `types`: builder of schemas for Python types.
        """
        self._responses = responses
        self._types = types

    def response(self, name: str, status: int) -> JsonObject:
        """Return a reference to the OpenAPI response for an HTTP status, whose body has the error format `name`.

        The response is added to the components if they lack it.
        """
        component = f"{name if name in ERROR_TYPES else DEFAULT_FORMAT}.{status}"
        if component not in self._responses:
            schema = self._types.schema(error_type(name))
            content = {"application/json": {"schema": schema}}
            self._responses[component] = {"description": error_description(status), "content": content}
        return {"$ref": f"#/components/responses/{component}"}


def error_description(status: int) -> str:
    """Return the description of the error response with an HTTP status, which lists the error reasons with this
    status.
    """
    names = enum_names(pb.ErrorReason.DESCRIPTOR)
    found = {reason for reason, value in HTTP_STATUS.items() if value == status and reason}
    found |= {reason for (_, reason), value in OF_FORMATS.items() if value == status}
    if str(status) in PROVIDERS_OWN:
        found.add(pb.ERROR_REASON_UPSTREAM_REJECTED)
    reasons = sorted(names[reason].upper() for reason in found)
    return f"Reasons: {', '.join(f'`{name}`' for name in reasons)}." if reasons else "The call failed."
