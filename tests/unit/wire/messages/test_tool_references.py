"""Tools that a tool search has loaded (`tool_reference` in a result), towards formats without them."""

import msgspec
import pytest

from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import MESSAGES_FORMAT

LOADED = [{"type": "tool_reference", "tool_name": "CronCreate"}, {"type": "tool_reference", "tool_name": "CronList"}]
BODY = {
    "model": "m",
    "max_tokens": 90,
    "tools": [
        {"name": "ToolSearch", "input_schema": {"type": "object"}},
        {"name": "CronCreate", "defer_loading": True, "input_schema": {"type": "object"}},
    ],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": LOADED}]},
    ],
}


@pytest.mark.parametrize("name", [name for name in TEXT_FORMATS if name != "messages"])
def test_it_is_text_elsewhere(name: str) -> None:
    request, _, notes = MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY), {})
    upstream = TEXT_FORMATS[name].encode_request(request, "m", False, notes=notes)
    assert b"loaded: CronCreate" in upstream.body
    assert b"loaded: CronList" in upstream.body
    assert upstream.report.header() == "tools.defer_loading"


@pytest.mark.parametrize("edited", [(), ("messages",)], ids=["as it came", "written anew"])
def test_it_is_forwarded_unchanged_to_a_provider_of_the_format(edited: tuple[str, ...]) -> None:
    request = MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY), {}).canonical
    body = msgspec.json.decode(
        MESSAGES_FORMAT.encode_request(request, "m", False, notes=RequestNotes(edited=edited)).body
    )
    assert body["messages"] == BODY["messages"]
