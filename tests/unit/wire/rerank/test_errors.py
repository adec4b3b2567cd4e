"""Errors: the gateway's as each version's clients read them, a provider's as the gateway's."""

import msgspec
import pytest

from tests.unit.wire.rerank.strategies import FORMATS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2


@pytest.mark.parametrize("reason", pb.ErrorReason.values(), ids=pb.ErrorReason.Name)
def test_errors_are_those_of_chat_and_clients_of_the_second_version_read_a_message(
    reason: "pb.ErrorReason.ValueType",
) -> None:
    error = UmgError(reason, 'what "happened"', field="documents[0]")
    for status in (400, 500):
        chat = CHAT_FORMAT.encode_error(error, status)
        assert RERANK_FORMAT.encode_error(error, status) == chat
        second = msgspec.json.decode(RERANK_V2.encode_error(error, status))
        assert second == {"message": second["error"]["message"], **msgspec.json.decode(chat)}


@pytest.mark.parametrize("name", FORMATS)
def test_an_input_that_is_too_long_is_that_of_the_documents(name: str) -> None:
    body = b'{"message":"too many tokens: max tokens must be less than 4096"}'
    assert FORMATS[name].decode_error(400, {}, body).metadata == {"field": "documents"}
