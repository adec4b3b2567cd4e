"""Raw JSON of gRPC callers: it must be one value, and adds nothing to a provider's body."""

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

CLOSING = '{}]}]}],"model":"dearer","rest":[{"rest":[{"rest":[{}'
"""Text that ends the lists and objects around a citation, adds another model, and opens as many again."""


@pytest.mark.parametrize("name", ["messages", "responses"])
@pytest.mark.parametrize("json", [CLOSING, "{", "{}{}"])
def test_a_citation_of_a_format_is_one_value(name: str, json: str) -> None:
    request = pb.GenerateRequest(model="m")
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "Hi"
    text = request.messages.add(role=pb.ROLE_ASSISTANT).parts.add().text
    text.text = "Ho"
    text.citations.add(opaque=pb.OpaquePart(format=name, type="x", json=json))
    with raises_error(reason=pb.ERROR_REASON_INVALID_FIELD):
        TEXT_FORMATS[name].encode_request(request, "m", False)
