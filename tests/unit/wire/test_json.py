"""The accepted values in the message of a refusal."""

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.chat import CHAT_FORMAT

REQUEST: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def refusal(modality: str, place: int) -> str:
    with pytest.raises(UmgError) as caught:
        CHAT_FORMAT.decode_request(msgspec.json.encode(REQUEST | {"modalities": ["text"] * place + [modality]}), {})
    return caught.value.message


def test_the_choices_of_a_field_are_looked_up_once_for_all_its_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = refusal("x", 0)
    assert first == "`modalities[0]`: 'x' is not one of its values; send one of `audio`, `image`, `text`"

    def unwanted(_: object) -> object:
        raise AssertionError("the type is described again")

    monkeypatch.setattr(msgspec.inspect, "type_info", unwanted)
    assert refusal("y", 3) == first.replace("[0]", "[3]").replace("'x'", "'y'")
