"""The model list and its models, in the chat shape."""

from dataclasses import dataclass

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from yarl import URL

from tests.facade.conftest import KEY, Face
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

MODELS = tuple(
    pb.Model(id=name, owned_by="someone", create_time=Timestamp(seconds=1700000000))
    for name in ("small", "vendor/large", "odd name")
)


def shown(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 1700000000, "owned_by": "someone"}


async def test_the_list_is_what_the_service_lists_for_this_key(face: Face) -> None:
    face.service.models = MODELS
    async with face.client.get(face.url("/v1/models"), headers=KEY) as answer:
        assert await answer.json() == {"object": "list", "data": [shown(model.id) for model in MODELS]}
        assert answer.headers["cache-control"] == "private, max-age=3600"
        assert answer.headers["vary"] == "Authorization"
    assert face.service.metadata[-1]["authorization"] == KEY["authorization"]


@dataclass(frozen=True)
class Named:
    id: str
    path: str
    model: str


NAMED = [
    Named(id="a plain name", path="/v1/models/small", model="small"),
    Named(id="a name with a slash", path="/v1/models/vendor/large", model="vendor/large"),
    Named(id="a slash in percent encoding", path="/v1/models/vendor%2Flarge", model="vendor/large"),
    Named(id="a blank in percent encoding", path="/v1/models/odd%20name", model="odd name"),
    Named(id="a query besides", path="/v1/models/small?beta=true", model="small"),
]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
async def test_a_model_is_found_by_the_name_in_the_path(face: Face, case: Named) -> None:
    face.service.models = MODELS
    async with face.client.get(URL(face.url(case.path), encoded=True), headers=KEY) as answer:
        assert await answer.json() == shown(case.model)


async def test_an_unknown_model_is_404_in_the_lists_own_error_body(face: Face) -> None:
    async with face.client.get(face.url("/v1/models/nobody"), headers=KEY) as answer:
        assert answer.status == 404
        error = {"message": "no model nobody", "type": "invalid_request_error", "code": "model_not_found"}
        assert await answer.json() == {"error": error}


@pytest.mark.parametrize(
    "reason", [pb.ERROR_REASON_MISSING_KEY, pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED]
)
async def test_a_bad_key_has_the_documented_code(face: Face, reason: "pb.ErrorReason.ValueType") -> None:
    face.service.failure = UmgError(reason, "no good key")
    async with face.client.get(face.url("/v1/models")) as answer:
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "cache-control" not in answer.headers
        error = {"message": "no good key", "type": "invalid_request_error", "code": "invalid_api_key"}
        assert await answer.json() == {"error": error}
