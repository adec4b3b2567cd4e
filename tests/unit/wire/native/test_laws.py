"""Laws of this format; `tests/unit/wire/test_laws.py` has those of all formats."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import cuts, few, modest
from tests.unit.wire.native import strategies as some
from tests.unit.wire.streams import decoded, encoded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.native import NATIVE_FORMAT


@few
@given(some.responses(), st.data(), st.booleans())
def test_a_json_array_has_the_chunks_of_the_event_stream(
    response: pb.GenerateResponse, data: st.DataObject, passed: bool
) -> None:
    stream = encoded(NATIVE_FORMAT, [response_to_events(response)], some.ANSWERED)
    messages = decoded(NATIVE_FORMAT, data.draw(cuts(stream)), some.ANSWERED, pass_=passed)
    assert NATIVE_FORMAT.array_encoder is not None
    encoder = NATIVE_FORMAT.array_encoder(some.ANSWERED)
    array = b"".join([*map(encoder.feed, messages), encoder.close()])
    lines = encoded(NATIVE_FORMAT, messages, some.ANSWERED).split(b"\n\n")[:-1]
    assert array == b"[" + b",\r\n".join(line.removeprefix(b"data: ") for line in lines) + b"]"
    assert encoder.close() == b""


def snaked(value: object, own: bool = False) -> object:
    """Return the document with snake_case keys, numbers as text, lower-case enums, and the caller's own JSON unchanged."""
    if own or isinstance(value, list):
        return [snaked(item) for item in value] if isinstance(value, list) and not own else value
    if not isinstance(value, dict):
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    keep = {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"}
    keep |= {"executableCode", "codeExecutionResult"}
    spelled = {}
    for name, item in value.items():
        key = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        opaque = name.startswith("x") or name == "newTool"
        if name in ("mode", "thinkingLevel", "mediaResolution", "threshold", "category", "level") and isinstance(
            item, str
        ):
            spelled[key] = item.lower()
        else:
            spelled[name if opaque else key] = snaked(item, name in keep or opaque)
    return spelled


@modest
@given(some.requests)
def test_every_key_may_be_in_snake_case_and_the_callers_json_is_unchanged(request: pb.GenerateRequest) -> None:
    body = NATIVE_FORMAT.encode_request(request, "m", False).body
    spelled = msgspec.json.encode(snaked(msgspec.json.decode(body)))
    came, expected = (NATIVE_FORMAT.decode_request(document, {}).canonical for document in (spelled, body))
    for compared in (came, expected):
        compared.ClearField("source")
        for tool in compared.tools:
            if tool.HasField("opaque"):
                tool.opaque.type = tool.opaque.json = "-"  # differs in the caller's spelling
    assert came == expected
