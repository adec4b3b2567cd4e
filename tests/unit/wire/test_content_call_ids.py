"""Ids of calls by their content."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.content_derived_call_ids import ContentIds


def call(name: str, arguments: str) -> pb.ToolCall:
    return pb.ToolCall(name=name, arguments_json=arguments)


def test_an_id_depends_on_the_name_and_the_values_and_on_no_spelling() -> None:
    written = [call("f", '{"a": 1, "b": "\\u00e9"}'), call("f", '{"b":"é","a":1}')]
    assert len({ContentIds().next(each) for each in written}) == 1
    others = [call("g", '{"a": 1, "b": "é"}'), call("f", '{"a": 2, "b": "é"}'), call("f", ""), call("f", "[1]")]
    assert len({ContentIds().next(each) for each in (*written, *others)}) == 5


def test_equal_calls_are_numbered_in_the_whole_conversation() -> None:
    parts = [pb.Part(tool_call=call("f", "{}")), pb.Part(tool_call=call("g", "{}"))]
    before = pb.GenerateRequest(messages=[pb.Message(parts=parts), pb.Message(parts=parts[:1])])
    again, other = ContentIds.after(before).next(parts[0].tool_call), ContentIds.after(before).next(parts[1].tool_call)
    ids = ContentIds()
    first, second = ids.next(parts[0].tool_call), ids.next(parts[1].tool_call)
    assert (again, other) == (f"{first}_2", f"{second}_1")
