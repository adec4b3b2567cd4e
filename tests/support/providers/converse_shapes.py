"""Judge of Converse requests: the vendor's own service model in botocore, by which its SDKs check and write requests.

`ParamValidator` checks types, required members and lengths; enumerations, patterns, unions and unknown members, which
the service refuses and the SDK does not, are checked here by the same shapes.
"""

import base64
import binascii
import re
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape
from botocore.validate import ParamValidator

from tests.support.providers.server import Json, RefusedError


@cache
def service_model() -> ServiceModel:
    """Return botocore's model of bedrock-runtime."""
    return botocore.session.get_session().get_service_model("bedrock-runtime")


def parameters(body: Json, model: str, operation: str = "Converse") -> Json:
    """Return the parameters of the SDK's call that would send this body. Raise RefusedError for a body that it would
    not send, or that the service refuses by its shapes.
    """
    shape = service_model().operation_model(operation).input_shape
    assert shape is not None
    found: Json = _read(body, shape, "") | {"modelId": model}
    report = ParamValidator().validate(found, shape)
    if report.has_errors():
        raise RefusedError(f"Malformed input request: {report.generate_report()}")
    return found


def _read(value: Any, shape: Any, at: str) -> Any:
    match shape.type_name:
        case "structure" if shape.is_document_type:
            return value
        case "structure":
            return _structure(value, shape, at)
        case "list":
            if not isinstance(value, list):
                raise RefusedError(f"{at}: expected a list")
            return [_read(each, shape.member, f"{at}[{index}]") for index, each in enumerate(value)]
        case "map":
            return {name: _read(each, shape.value, f"{at}.{name}") for name, each in value.items()}
        case "blob":
            return _blob(value, at)
        case "string":
            _judge_text(value, shape, at)
    return value


def _structure(value: Any, shape: Any, at: str) -> Json:
    if not isinstance(value, dict):
        raise RefusedError(f"{at}: expected an object")
    if unknown := value.keys() - shape.members.keys():
        raise RefusedError(f"#{at}: extraneous key [{min(unknown)}] is not permitted")
    if shape.is_tagged_union and len(value) != 1:
        raise RefusedError(f"{at}: a union has exactly one member, got {sorted(value)}")
    return {name: _read(each, shape.members[name], f"{at}.{name}") for name, each in value.items()}


def _blob(value: Any, at: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise RefusedError(f"{at}: invalid base64") from error


def _judge_text(value: Any, shape: Shape, at: str) -> None:
    if not isinstance(value, str):
        raise RefusedError(f"{at}: expected a text, got {value!r}")
    if shape.enum and value not in shape.enum:
        raise RefusedError(f"{at}: {value} is not a valid enum value; expected one of {shape.enum}")
    if (pattern := shape.metadata.get("pattern")) and not re.fullmatch(pattern, value):
        raise RefusedError(f"{at}: the value {value!r} does not match {pattern}")
