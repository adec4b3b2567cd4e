"""Accepted bodies keep the rules of the schema, so that the service does not refuse them afterwards."""

import json

import pytest

from tests.unit.wire.bodies import Bodies
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.wire.ollama import FACES, schema

PLAIN = (schema.Options, schema.FunctionTool)
BODIES = {
    "ollama_chat": Bodies(
        schema.ChatBody, {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, plain=PLAIN
    ),
    "ollama_generate": Bodies(schema.GenerateBody, {"model": "m", "prompt": "Hi"}, plain=PLAIN),
}


def kept(name: str, body: object) -> bool:
    """Return whether the body is accepted; if so, check that it keeps the rules."""
    try:
        request = FACES[name].decode_request(json.dumps(body).encode(), {}).canonical
    except UmgError:
        return False
    check(request)
    return True


def test_every_face_is_tried() -> None:
    assert BODIES.keys() == FACES.keys()


@pytest.mark.parametrize("name", BODIES)
def test_an_accepted_body_satisfies_the_rules(name: str) -> None:
    assert kept(name, BODIES[name].right)
    assert sum(kept(name, body) for body in BODIES[name].some()) > 100  # otherwise nothing was tested
