"""Turns of roles that a vendor may add: passed through on a channel of their format, refused by name elsewhere."""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.unknown_role_messages import RawTurns
from umg_grpc.wire.facts_beside_request import RequestNotes

USER = {"role": "user", "content": "Hi"}
ROBOT = {"role": "robot\n", "content": [{"type": "beep", "n": 1.0}]}


@dataclass(frozen=True)
class Body:
    """A body with a turn of an unknown role."""

    format: str
    field: str
    body: dict[str, object]

    @property
    def id(self) -> str:
        return self.format


BODIES = [
    Body("chat", "messages[1].role", {"model": "m", "messages": [USER, ROBOT, USER]}),
    Body("messages", "messages[1].role", {"model": "m", "max_tokens": 9, "messages": [USER, ROBOT, USER]}),
    Body("responses", "input[1].role", {"model": "m", "input": [USER, ROBOT, USER]}),
    Body("native", "contents[1].role", {"contents": [{"parts": [{"text": "Hi"}]}, {"role": "robot\n", "parts": []}]}),
]


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_a_turn_of_an_unknown_role_reaches_a_provider_of_its_format(case: Body) -> None:
    codec = TEXT_FORMATS[case.format]
    request = codec.decode_request(msgspec.json.encode(case.body), {}).canonical
    upstream = codec.encode_request(request, "m", False)
    assert msgspec.json.decode(upstream.body) == case.body
    assert not upstream.report.lost


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_a_turn_of_an_unknown_role_is_kept_when_the_messages_are_encoded_again(case: Body) -> None:
    codec = TEXT_FORMATS[case.format]
    request = codec.decode_request(msgspec.json.encode(case.body), {}).canonical
    upstream = codec.encode_request(request, "m", False, notes=RequestNotes(edited=("messages",)))
    rewritten = msgspec.json.decode(upstream.body)
    (field,) = {"messages", "input", "contents"} & rewritten.keys()
    assert rewritten[field][1] == case.body[field][1]  # type: ignore[index]


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_a_turn_of_an_unknown_role_is_refused_by_its_role_towards_another_format(case: Body) -> None:
    request, _, notes = TEXT_FORMATS[case.format].decode_request(msgspec.json.encode(case.body), {})
    for name in TEXT_FORMATS.keys() - {case.format}:
        with pytest.raises(UmgError) as caught:
            TEXT_FORMATS[name].encode_request(request, "m", False)
        assert caught.value.name == "UNSUPPORTED_FIELD"
        assert notes.opaque_paths[caught.value.metadata["field"]] == case.field
        assert "`robot?`" in caught.value.message


MANY = 10_000


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_many_turns_of_an_unknown_role_are_kept_in_their_order(case: Body) -> None:
    (field,) = {"messages", "input", "contents"} & case.body.keys()
    turns = [{"role": f"robot{index}", "parts" if field == "contents" else "content": []} for index in range(MANY)]
    body = msgspec.json.encode(case.body | {field: turns})
    messages = TEXT_FORMATS[case.format].decode_request(body, {}).canonical.messages
    assert [msgspec.json.decode(message.parts[0].opaque.json) for message in messages] == turns


def test_the_turns_of_a_body_are_decoded_once() -> None:
    turns = RawTurns(pb.SourceDocument(body=b'{"messages": [{"role": "a"}, 2]}'), "messages")
    assert bytes(turns[1]) == b"2"
    assert turns[0] is turns[0]
