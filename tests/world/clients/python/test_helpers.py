"""Helpers of the Python client for messages, tools and downloads, without a server."""

import struct
from collections.abc import AsyncIterator

import pytest
from umg_client import floats, text, tool_calls, user, v1
from umg_client.content import collect, file_token
from umg_client.tools import result_of


def test_the_text_of_an_answer_is_that_of_its_first_candidate() -> None:
    parts = [v1.Part(text=v1.TextPart(text="a")), v1.Part(refusal=v1.RefusalPart(text="no")), *user("b").parts]
    message = v1.Message(role=v1.Role.ASSISTANT, parts=parts)
    assert text(v1.GenerateResponse(candidates=[v1.Candidate(message=message), v1.Candidate()])) == "ab"
    assert text(v1.GenerateResponse()) == text(v1.GenerateResponse(candidates=[v1.Candidate()])) == ""


def test_the_numbers_of_a_vector_are_little_endian() -> None:
    assert floats(v1.Embedding(values=struct.pack("<3f", 1, -0.5, 0.25))).tolist() == [1, -0.5, 0.25]


def test_tool_calls_are_those_of_the_first_candidate() -> None:
    call = v1.ToolCall(call_id="1", name="weather")
    message = v1.Message(parts=[*user("a").parts, v1.Part(tool_call=call)])
    assert tool_calls(v1.GenerateResponse(candidates=[v1.Candidate(message=message)])) == [call]
    assert tool_calls(v1.GenerateResponse()) == []


def add(left: int, right: int) -> int:
    return left + right


async def join(left: str, right: str = "!") -> str:
    return left + right


TOOLS = {"add": add, "join": join}


@pytest.mark.parametrize(
    ("name", "arguments", "result", "is_error"),
    [
        ("add", '{"left": 1, "right": 2}', "3", None),
        ("join", '{"left": "a"}', "a!", None),
        ("add", '{"left": 1}', "TypeError: add() missing 1 required positional argument: 'right'", True),
        (
            "add",
            "{",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            True,
        ),
        ("divide", "{}", "there is no tool 'divide'", True),
    ],
)
async def test_a_tool_is_called_with_its_arguments(
    name: str, arguments: str, result: str, is_error: bool | None
) -> None:
    part = await result_of(v1.ToolCall(call_id="7", name=name, arguments_json=arguments), TOOLS)
    assert part.tool_result == v1.ToolResult(call_id="7", name=name, parts=user(result).parts, is_error=is_error)


async def test_a_download_reports_its_progress() -> None:
    async def messages() -> AsyncIterator[v1.DownloadVideoResponse]:
        yield v1.DownloadVideoResponse(head=v1.ContentHead(mime_type="video/mp4", total_bytes=5))
        yield v1.DownloadVideoResponse(chunk=b"abc")
        yield v1.DownloadVideoResponse(chunk=b"de")

    progress: list[tuple[int, int | None]] = []
    content = await collect(messages(), lambda received, total: progress.append((received, total)))
    assert (content.data, content.mime_type, progress) == (b"abcde", "video/mp4", [(3, 5), (5, 5)])


def test_only_a_file_of_the_gateway_has_a_token() -> None:
    assert file_token("https://gateway.example/files/abc.def") == "abc.def"
    with pytest.raises(ValueError, match="its provider"):
        file_token("https://provider.example/image.png")
