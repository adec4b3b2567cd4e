"""Parts of a request whose tokens are counted, because the model reads them: system prompt, messages and tools.

Output parameters and the response format are not counted, nor is content that only the provider stores: a prompt
template, a cached prefix, an earlier response.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from umg_grpc.v1 import pb

NAME_TOKENS = 1
TOOL_TOKENS = 4  # marks around a tool declaration, call or result
HIDDEN_CHARACTERS = 6  # characters for one token in base64 of encrypted text, which only the provider can read

Piece = str | int | pb.MediaPart
"""Text to be counted, number of tokens, or media part whose tokens depend on its bytes."""


def request_pieces(request: pb.GenerateRequest, message_tokens: int) -> Iterator[Piece]:
    """Yield the countable pieces of a request in order: instructions, messages, tools. `message_tokens`: tokens that
    are added for the role and the separators of each message.
    """
    if request.instructions:
        yield message_tokens
        yield from part_pieces(request.instructions)
    for message in request.messages:
        yield message_tokens
        if message.name:
            yield NAME_TOKENS
            yield message.name
        yield from part_pieces(message.parts)
    for tool in request.tools:
        yield TOOL_TOKENS
        yield from _tool_pieces(tool)


def part_pieces(parts: Iterable[pb.Part]) -> Iterator[Piece]:
    """Yield the countable pieces of message parts: all that models read, without ids, sources and log probabilities."""
    for part in parts:
        yield from _part_pieces(part)


def _part_pieces(part: pb.Part) -> Iterator[Piece]:
    match part.WhichOneof("kind"):
        case "text":
            yield part.text.text
        case "media":
            yield from _media_pieces(part.media)
        case "reasoning":
            yield from _reasoning_pieces(part)
        case "tool_call":
            yield TOOL_TOKENS
            yield part.tool_call.name
            yield part.tool_call.arguments_json or part.tool_call.text
        case "tool_result":
            yield TOOL_TOKENS
            yield from _result_pieces(part.tool_result)
        case "server_tool_call":
            call = part.server_tool_call
            yield TOOL_TOKENS
            yield call.name
            yield call.input_json or "\n".join(call.queries)
        case "server_tool_result":
            yield TOOL_TOKENS
            yield from _server_result_pieces(part.server_tool_result)
        case "refusal":
            yield part.refusal.text
        case "opaque" if part.opaque.handling == pb.OPAQUE_HANDLING_CARRIED:
            pass  # other fields have the same content
        case "opaque":
            yield part.opaque.text or part.opaque.json
        case "compaction" | None:
            pass  # replaced by the text of its summary before it is counted; a kind newer than this build
        case unhandled:
            assert_never(unhandled)


def _media_pieces(media: pb.MediaPart) -> Iterator[Piece]:
    if media.WhichOneof("source") == "blocks":
        yield from part_pieces(media.blocks.parts)
    else:
        yield media
    if media.kind == pb.MEDIA_KIND_DOCUMENT:
        yield media.title
        yield media.context
        yield media.origin


def _reasoning_pieces(part: pb.Part) -> Iterator[Piece]:
    """Yield the pieces of a reasoning part. Reasoning of earlier messages counts, though some providers drop it."""
    reasoning = "".join(part.reasoning.texts)
    if reasoning:
        yield reasoning
    elif part.state.data:
        yield len(part.state.data) // HIDDEN_CHARACTERS
    else:
        yield "\n".join(part.reasoning.summaries)


def _result_pieces(result: pb.ToolResult) -> Iterator[Piece]:
    if result.parts:
        yield from part_pieces(result.parts)
    else:
        yield result.result_json


def _server_result_pieces(result: pb.ServerToolResult) -> Iterator[Piece]:
    for page in result.results:
        yield f"{page.title}\n{page.url}\n{page.page_age}"
        yield len(page.encrypted_content) // HIDDEN_CHARACTERS
    yield result.output_json or result.error_code


def _tool_pieces(tool: pb.Tool) -> Iterator[Piece]:
    """Yield a tool's declaration as the caller wrote it; of a tool that the provider runs, only the name is known."""
    match tool.WhichOneof("kind"):
        case "function":
            yield tool.function.name
            yield tool.function.description
            yield tool.function.parameters_json
        case "custom":
            yield tool.custom.name
            yield tool.custom.description
            yield tool.custom.format_json
        case "web_search":
            yield "web_search"
        case "file_search":
            yield "file_search"
        case "opaque":
            yield tool.opaque.json
        case None:
            pass  # a kind newer than this build
        case unhandled:
            assert_never(unhandled)
